"""Files: uploaded ones that wait for their job, and those that are kept."""
