"""From a file or a note to chunks with vectors."""
