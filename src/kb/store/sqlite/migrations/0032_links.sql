-- The links in documents: the target as written, the key that finds documents, and the place in characters.
-- kb looks up the document that a link leads to when it reads the link; see kb/index/words/links.py.
CREATE TABLE links (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  target TEXT NOT NULL,
  link_key TEXT NOT NULL,
  spot INTEGER NOT NULL,
  place INTEGER NOT NULL,
  PRIMARY KEY (document_id, number)
) WITHOUT ROWID;
CREATE INDEX links_key ON links (link_key, spot, document_id);
-- The keys that find a document, the best rank of each.
CREATE TABLE link_names (
  link_key TEXT NOT NULL,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key_rank INTEGER NOT NULL,
  PRIMARY KEY (link_key, document_id)
) WITHOUT ROWID;
CREATE INDEX link_names_document ON link_names (document_id);

-- The message ids of each mail by its content, as JSON: its own id or an empty text, and the ids of mails that it answers.
CREATE TABLE message_ids (content_hash TEXT PRIMARY KEY, ids TEXT NOT NULL) WITHOUT ROWID;

-- While kb reads the links of the documents of an older kb, the highest first: the lowest id that it has read.
CREATE TABLE links_backfill (before INTEGER NOT NULL);
INSERT INTO links_backfill SELECT max(id) + 1 FROM documents HAVING count(*) > 0;
