"""The vectors in memory, apart from any database."""
