"""Databases of version 2, which are brought to where the numbered migrations begin."""
