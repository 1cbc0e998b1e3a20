"""Export everything to files that other programs can read, and import an export."""
