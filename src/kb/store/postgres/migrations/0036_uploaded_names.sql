-- A filter by name also compares the names under which files without a path were sent.
INSERT INTO unnamed SELECT id FROM documents WHERE source_path IS NULL AND uploaded_as IS NOT NULL ON CONFLICT DO NOTHING;
