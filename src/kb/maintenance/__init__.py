"""Maintenance of a whole database: check, repair, backup, restore, export and import."""
