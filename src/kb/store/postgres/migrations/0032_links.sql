-- The links in documents. kb looks up the document that a link leads to when it reads the link; see kb/index/words/links.py.
CREATE TABLE links (
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  number int NOT NULL,
  target text NOT NULL,
  link_key text COLLATE "C" NOT NULL,
  spot bigint NOT NULL,
  place int NOT NULL,
  PRIMARY KEY (document_id, number)
);
CREATE INDEX links_key ON links (link_key, spot, document_id);
COMMENT ON TABLE links IS 'the targets as written, the keys that find documents, and the places in characters';

CREATE TABLE link_names (
  link_key text COLLATE "C" NOT NULL,
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key_rank int NOT NULL,
  PRIMARY KEY (link_key, document_id)
);
CREATE INDEX link_names_document ON link_names (document_id);
COMMENT ON TABLE link_names IS 'the keys that find a document, the best rank of each';

-- The message ids of each mail by its content, as JSON: its own id or an empty text, and the ids of mails that it answers.
CREATE TABLE message_ids (content_hash text PRIMARY KEY, ids text NOT NULL);

-- While kb reads the links of the documents of an older kb, the highest first: the lowest id that it has read.
CREATE TABLE links_backfill (before bigint NOT NULL);
INSERT INTO links_backfill SELECT max(id) + 1 FROM documents HAVING count(*) > 0;
