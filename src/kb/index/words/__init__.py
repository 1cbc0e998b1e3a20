"""BM25 over postings in memory; no database."""
