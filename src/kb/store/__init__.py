"""Documents, chunks, tags and jobs on disk."""
