-- What chunks stand under is kept once for all of a document's chunks that stand under the same, not with each of them.

DROP TRIGGER chunks_ai;
DROP TRIGGER chunks_ad;
DROP TRIGGER chunks_au;
DROP TABLE chunks_fts;

CREATE TABLE sections (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL,
  header TEXT NOT NULL,
  heading TEXT NOT NULL
);
CREATE INDEX sections_document ON sections (document_id);

-- A section is called as the first of its chunks.
ALTER TABLE chunks ADD COLUMN section_id INTEGER;
UPDATE chunks SET section_id = first.id
  FROM (
    SELECT id AS chunk_id, min(id) OVER (PARTITION BY document_id, header, heading) AS id FROM chunks
    WHERE header <> '' OR heading <> '[]'
  ) AS first
  WHERE chunk_id = chunks.id;
INSERT INTO sections SELECT id, document_id, header, heading FROM chunks WHERE section_id = id;

ALTER TABLE chunks DROP COLUMN header;
ALTER TABLE chunks DROP COLUMN heading;

-- The same texts as before, from where they are now.
CREATE VIEW chunk_texts AS
  SELECT chunks.id AS id, text, COALESCE(header, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = section_id;
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  text, header, content = 'chunk_texts', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild');
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES ('delete', old.id, old.text, COALESCE((SELECT header FROM sections WHERE id = old.section_id), ''));
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES ('delete', old.id, old.text, COALESCE((SELECT header FROM sections WHERE id = old.section_id), ''));
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
