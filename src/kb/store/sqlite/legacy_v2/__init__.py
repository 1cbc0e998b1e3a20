"""Migration of databases of kb 2 to the first numbered schema."""
