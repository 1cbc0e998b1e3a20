"""The SQL that both stores share, translated for each store when it is read."""
