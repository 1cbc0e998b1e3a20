"""What other search libraries find in the same texts with the same vectors: a module for each, with `rank`."""
