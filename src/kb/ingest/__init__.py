"""Turn files and notes into chunks with vectors."""
