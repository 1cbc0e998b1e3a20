"""Back up a database with its files, and restore it."""
