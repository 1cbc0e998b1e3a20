"""kb and programs for the same purpose: a module for each, with `connected`, `add` and `search`."""
