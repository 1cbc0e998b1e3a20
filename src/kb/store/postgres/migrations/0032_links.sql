-- The links in documents. kb looks up the document that a link leads to when it reads the link; see kb/lexical/links.py.
CREATE TABLE links (
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  number int NOT NULL,
  target text NOT NULL,
  link_key text COLLATE "C" NOT NULL,
  place int NOT NULL,
  PRIMARY KEY (document_id, number)
);
CREATE INDEX links_key ON links (link_key, document_id);
COMMENT ON TABLE links IS 'the targets as written, the keys that find documents, and the places in characters';

CREATE TABLE link_names (
  link_key text COLLATE "C" NOT NULL,
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key_rank int NOT NULL,
  PRIMARY KEY (link_key, document_id)
);
CREATE INDEX link_names_document ON link_names (document_id);
COMMENT ON TABLE link_names IS 'the keys that find a document, the best rank of each';

INSERT INTO unnamed SELECT id FROM documents ON CONFLICT DO NOTHING;
