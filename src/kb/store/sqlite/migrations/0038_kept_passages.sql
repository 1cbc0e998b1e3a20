-- An edit keeps the rows of unchanged passages and updates their places, which are not indexed.
DROP TRIGGER chunks_au;
CREATE TRIGGER chunks_au AFTER UPDATE OF text, section_id, segmented, variants ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text) || COALESCE(' ' || old.variants, ''),
    COALESCE((
      SELECT COALESCE(segmented, header) || COALESCE(' ' || variants, '') FROM sections WHERE id = old.section_id
    ), '')
  );
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;

-- Documents whose chunks do not have ascending ids without gaps, because an edit kept some of them. See context.py.
CREATE TABLE scattered_documents (
  document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE
);
