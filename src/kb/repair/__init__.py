"""Check a database, and compute its words and vectors again."""
