-- Texts of scripts without spaces are searched by pairs of letters; see kb/lexical/segment.py. Only what has such letters is
-- indexed anew.

ALTER TABLE chunks ADD COLUMN segmented TEXT;
ALTER TABLE sections ADD COLUMN segmented TEXT;
DROP TRIGGER chunks_ai;
DROP TRIGGER chunks_ad;
DROP TRIGGER chunks_au;

UPDATE chunks SET segmented = segmented(text) WHERE segmented(text) IS NOT NULL;
UPDATE sections SET segmented = segmented(header) WHERE segmented(header) IS NOT NULL;
CREATE TEMP TABLE segmented_ids AS
  SELECT chunks.id FROM chunks LEFT JOIN sections ON sections.id = section_id
  WHERE chunks.segmented IS NOT NULL OR sections.segmented IS NOT NULL;
INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  SELECT 'delete', id, text, header FROM chunk_texts WHERE id IN (SELECT id FROM temp.segmented_ids);

DROP VIEW chunk_texts;
-- As they are searched: texts of scripts without spaces in pairs of letters; see kb/lexical/segment.py.
CREATE VIEW chunk_texts AS
  SELECT chunks.id AS id, COALESCE(chunks.segmented, text) AS text, COALESCE(sections.segmented, header, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = section_id;
-- As they were written.
CREATE VIEW source_texts AS
  SELECT chunks.id AS id, text, COALESCE(header, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = section_id;

INSERT INTO chunks_fts (rowid, text, header)
  SELECT id, text, header FROM chunk_texts WHERE id IN (SELECT id FROM temp.segmented_ids);
DROP TABLE temp.segmented_ids;

CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text),
    COALESCE((SELECT COALESCE(segmented, header) FROM sections WHERE id = old.section_id), '')
  );
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text),
    COALESCE((SELECT COALESCE(segmented, header) FROM sections WHERE id = old.section_id), '')
  );
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
