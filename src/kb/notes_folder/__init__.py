"""A folder with a Markdown file for each note, kept in step with the database in both directions."""
