"""A store in PostgreSQL with pgvector."""
