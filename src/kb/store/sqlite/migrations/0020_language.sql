-- Documents say in which language they are, and the stems of their words by its rules are indexed; see kb/lexical/stems.py.
-- Both are found out while the engine runs; see reanalysis.py.

ALTER TABLE documents ADD COLUMN language TEXT;
ALTER TABLE versions ADD COLUMN language TEXT;
CREATE INDEX documents_language ON documents (language);
DELETE FROM reanalysis;
INSERT INTO reanalysis SELECT 1, 0 WHERE EXISTS (SELECT 1 FROM chunks);
