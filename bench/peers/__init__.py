"""kb beside programs that do the same job: a module for each, with `connected`, `add` and `search`."""
