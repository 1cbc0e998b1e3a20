-- What is deleted is gone: from the full text, and from the jobs that brought it. Tags are kept composed (NFC).

CREATE INDEX jobs_queue ON jobs (attempts, id) WHERE status = 'queued';
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX jobs_part_of ON jobs (part_of) WHERE part_of IS NOT NULL;

-- FTS5 keeps this in a table of its own.
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);

-- As forget_document in sql/jobs.sql.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = '[]', content_hash = NULL,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id NOT IN (SELECT id FROM documents) OR part_of NOT IN (SELECT id FROM documents);

-- `nfc` is the program's. A document that carries a tag in both forms carries it once.
INSERT OR IGNORE INTO tags (name) SELECT DISTINCT nfc(name) FROM tags WHERE name <> nfc(name);
INSERT OR IGNORE INTO document_tags
  SELECT document_id, composed.id FROM document_tags
  JOIN tags AS decomposed ON decomposed.id = tag_id JOIN tags AS composed ON composed.name = nfc(decomposed.name)
  WHERE decomposed.name <> nfc(decomposed.name);
DELETE FROM document_tags WHERE tag_id IN (SELECT id FROM tags WHERE name <> nfc(name));
DELETE FROM tags WHERE name <> nfc(name);
UPDATE documents SET own_tags = nfc(own_tags) WHERE own_tags <> nfc(own_tags);
UPDATE jobs SET tags = nfc(tags) WHERE tags <> nfc(tags);
