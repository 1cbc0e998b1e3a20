"""Who may see and change what: keys with rights, a store as one caller sees it, and what was done by whom."""
