"""The indexes of searches in memory: words, and vectors."""
