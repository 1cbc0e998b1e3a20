"""The HTTP surface: a handler is a few lines."""
