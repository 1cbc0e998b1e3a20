-- Documents say in which language they are, and the stems of their words by its rules are indexed; see kb/lexical/stems.py.
-- Both are found out by kb/store/postgres/refold.py.

ALTER TABLE documents ADD language text COLLATE "C";
ALTER TABLE versions ADD language text COLLATE "C";
CREATE INDEX documents_language ON documents (language);
COMMENT ON COLUMN documents.language IS 'the ISO 639-1 code of what its text is in, if that is clear';
