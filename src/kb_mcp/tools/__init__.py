"""Tools, prompts and resources, as agents see them."""
