"""Access control: keys with rights, the store as one caller sees it, and the audit log."""
