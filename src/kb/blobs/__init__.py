"""Files: uploaded files that wait for their job, and kept files."""
