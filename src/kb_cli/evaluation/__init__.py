"""How well searches find what they should."""
