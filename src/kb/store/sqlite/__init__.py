"""The store on SQLite, with FTS5 and sqlite-vec."""
