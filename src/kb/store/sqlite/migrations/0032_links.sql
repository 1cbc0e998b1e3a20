-- The links in documents: the target as written, the key that finds documents, and the place in characters.
-- kb looks up the document that a link leads to when it reads the link; see kb/lexical/links.py.
CREATE TABLE links (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  target TEXT NOT NULL,
  link_key TEXT NOT NULL,
  place INTEGER NOT NULL,
  PRIMARY KEY (document_id, number)
) WITHOUT ROWID;
CREATE INDEX links_key ON links (link_key, document_id);
-- The keys that find a document, the best rank of each.
CREATE TABLE link_names (
  link_key TEXT NOT NULL,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key_rank INTEGER NOT NULL,
  PRIMARY KEY (link_key, document_id)
) WITHOUT ROWID;
CREATE INDEX link_names_document ON link_names (document_id);
-- Read the links of all documents.
INSERT OR IGNORE INTO unnamed SELECT id FROM documents;
