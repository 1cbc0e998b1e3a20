"""One reader per format, each a pure function from a file's bytes to its text."""
