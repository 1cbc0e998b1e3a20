"""Databases of version 2, which are brought to version 3; the numbered migrations go on from there."""
