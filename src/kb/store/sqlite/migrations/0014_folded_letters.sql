-- Letters are indexed in one way, however they are written; see kb/lexical/segment.py. Only what has others is indexed
-- anew.

DROP TRIGGER chunks_au;
CREATE TEMP TABLE folded_sections AS SELECT id FROM sections WHERE segmented IS NOT segmented(header);
CREATE TEMP TABLE folded_chunks AS
  SELECT id FROM chunks
  WHERE segmented IS NOT segmented(text) OR section_id IN (SELECT id FROM temp.folded_sections);
INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  SELECT 'delete', id, text, header FROM chunk_texts WHERE id IN (SELECT id FROM temp.folded_chunks);

UPDATE chunks SET segmented = segmented(text) WHERE id IN (SELECT id FROM temp.folded_chunks);
UPDATE sections SET segmented = segmented(header) WHERE id IN (SELECT id FROM temp.folded_sections);

INSERT INTO chunks_fts (rowid, text, header)
  SELECT id, text, header FROM chunk_texts WHERE id IN (SELECT id FROM temp.folded_chunks);
DROP TABLE temp.folded_chunks;
DROP TABLE temp.folded_sections;

CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text),
    COALESCE((SELECT COALESCE(segmented, header) FROM sections WHERE id = old.section_id), '')
  );
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
