-- Other forms of words are indexed behind the text; see kb/lexical/variants.py. What has some is indexed again by
-- kb/store/postgres/refold.py. Documents are found by their names; see kb/lexical/names.py.

CREATE TABLE names (
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  token text COLLATE "C" NOT NULL,
  PRIMARY KEY (document_id, token)
);
CREATE INDEX names_token ON names (token, document_id);
COMMENT ON TABLE names IS 'by which words the names of documents are found, each name also as a whole';

CREATE TABLE unnamed (
  document_id bigint PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE
);
COMMENT ON TABLE unnamed IS 'documents whose names are to be written, by the transaction that changes them';
CREATE FUNCTION note_names() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO unnamed VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
CREATE TRIGGER documents_insert_names AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION note_names();
CREATE TRIGGER documents_update_names AFTER UPDATE OF title, source_path, uploaded_as ON documents
  FOR EACH ROW EXECUTE FUNCTION note_names();
INSERT INTO unnamed SELECT id FROM documents;

-- One spelling of each path; 0007 has done so for documents.
UPDATE jobs SET source_path = normalize(source_path, NFC) WHERE source_path <> normalize(source_path, NFC);
