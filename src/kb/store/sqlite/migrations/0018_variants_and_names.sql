-- Other forms of words are indexed behind the text; see kb/lexical/variants.py. Documents are found by their names; see
-- kb/lexical/names.py. What was indexed before is indexed again while the engine runs; see reanalysis.py.

ALTER TABLE chunks ADD COLUMN variants TEXT;
ALTER TABLE sections ADD COLUMN variants TEXT;
DROP TRIGGER chunks_ad;
DROP TRIGGER chunks_au;
DROP VIEW chunk_texts;
CREATE VIEW chunk_texts AS
  SELECT
    chunks.id AS id,
    COALESCE(chunks.segmented, text) || COALESCE(' ' || chunks.variants, '') AS text,
    COALESCE(sections.segmented, header, '') || COALESCE(' ' || sections.variants, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = section_id;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text) || COALESCE(' ' || old.variants, ''),
    COALESCE((
      SELECT COALESCE(segmented, header) || COALESCE(' ' || variants, '') FROM sections WHERE id = old.section_id
    ), '')
  );
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text) || COALESCE(' ' || old.variants, ''),
    COALESCE((
      SELECT COALESCE(segmented, header) || COALESCE(' ' || variants, '') FROM sections WHERE id = old.section_id
    ), '')
  );
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;

CREATE TABLE names (
  token TEXT NOT NULL,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  PRIMARY KEY (token, document_id)
) WITHOUT ROWID;
CREATE INDEX names_document ON names (document_id);
CREATE TABLE unnamed (document_id INTEGER PRIMARY KEY);
CREATE TRIGGER documents_ai_names AFTER INSERT ON documents BEGIN
  INSERT OR IGNORE INTO unnamed VALUES (new.id);
END;
CREATE TRIGGER documents_au_names AFTER UPDATE OF title, source_path, uploaded_as ON documents BEGIN
  INSERT OR IGNORE INTO unnamed VALUES (new.id);
END;
INSERT INTO unnamed SELECT id FROM documents;

CREATE TABLE reanalysis (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  document_id INTEGER NOT NULL
);
-- One spelling of each path; 0017 has done so for documents.
UPDATE jobs SET source_path = nfc(source_path) WHERE CASE WHEN source_path IS NOT NULL THEN source_path <> nfc(source_path) END;
INSERT INTO reanalysis SELECT 1, 0 WHERE EXISTS (SELECT 1 FROM chunks);
