-- From version 2, with the columns of kb 3, but without its triggers and other tables. Fill the new columns.

-- Clear the columns whose names version 2 may have used for something else.
UPDATE documents SET
  uploaded_as = NULL, title_given = 0, source = NULL, own_tags = '[]', part_of = NULL, version = 1, changed_by = NULL, changed_with = NULL, changed_why = NULL,
  replaces = NULL, omitted = '{}', operation = NULL, language = NULL;

DELETE FROM chunks WHERE document_id NOT IN (SELECT id FROM documents);
DELETE FROM document_tags WHERE document_id NOT IN (SELECT id FROM documents) OR tag_id NOT IN (SELECT id FROM tags);
UPDATE chunks SET text = '' WHERE text IS NULL;
UPDATE chunks SET chunk_index = numbered.number
  FROM (SELECT id, row_number() OVER (PARTITION BY document_id ORDER BY chunk_index, id) - 1 AS number FROM chunks)
    AS numbered
  WHERE numbered.id = chunks.id AND document_id IN (
    SELECT document_id FROM chunks GROUP BY document_id HAVING count(DISTINCT chunk_index) < count(*)
  );

UPDATE documents SET created_at = COALESCE(utc(created_at), strftime('%Y-%m-%d %H:%M:%f', 'now'))
  WHERE created_at IS NOT utc(created_at);
UPDATE documents SET updated_at = utc(updated_at) WHERE updated_at IS NOT utc(updated_at);
UPDATE documents SET doc_type = CASE WHEN source_path IS NULL THEN 'note' ELSE 'text' END
  WHERE COALESCE(doc_type, '') = '';
UPDATE documents SET title = COALESCE(
    NULLIF(file_name(source_path), ''),
    NULLIF(first_line((SELECT text FROM chunks WHERE document_id = documents.id ORDER BY chunk_index LIMIT 1)), ''),
    '(untitled)'
  ) WHERE COALESCE(title, '') = '';
UPDATE documents SET content_hash = (
    SELECT sha256(COALESCE(group_concat(text, '' ORDER BY chunk_index), '')) FROM chunks
    WHERE document_id = documents.id
  ) WHERE COALESCE(content_hash, '') = '';

-- Version 2 did not store the start of its chunks. Count from the first one, as if they followed each other.
UPDATE chunks SET char_start = place.char_end - characters(text), char_end = place.char_end
  FROM (
    SELECT id, sum(characters(text)) OVER (PARTITION BY document_id ORDER BY chunk_index) AS char_end FROM chunks
  ) AS place
  WHERE place.id = chunks.id AND chunks.char_end <= chunks.char_start;
UPDATE chunks SET line_start = place.next - line_ends(text), line_end = place.next - line_ends(last_blank(text))
  FROM (
    SELECT id, 1 + sum(line_ends(text)) OVER (PARTITION BY document_id ORDER BY chunk_index) AS next FROM chunks
  ) AS place
  WHERE place.id = chunks.id AND line_start = 0;

UPDATE jobs SET
  created_at = COALESCE(utc(created_at), strftime('%Y-%m-%d %H:%M:%f', 'now')),
  started_at = utc(started_at),
  finished_at = utc(finished_at),
  heartbeat_at = NULL,
  tags = nfc(json_strings(tags)),
  filename = file_name(filename),
  source_path = nfc(source_path),
  attempts = 0,
  progress = 0,
  staged = NULL,
  content_hash = NULL,
  part_of = NULL,
  depth = 0,
  limits = NULL,
  source = NULL,
  replaces = NULL,
  existed = 0,
  omitted = '{}',
  operation_key = NULL,
  status = CASE
    WHEN lower(status) IN ('done', 'complete', 'completed', 'finished', 'success', 'succeeded') THEN 'done'
    WHEN lower(status) IN ('failed', 'failure', 'error', 'cancelled', 'canceled') THEN 'failed'
    ELSE 'queued'
  END;
UPDATE jobs SET kind = CASE WHEN filename IS NOT NULL OR lower(kind) LIKE '%file%' THEN 'file' ELSE 'note' END
  WHERE kind IS NULL OR kind NOT IN ('note', 'file');
UPDATE jobs SET progress = 1 WHERE status = 'done';
UPDATE jobs SET error = 'The reason was not recorded.' WHERE status = 'failed' AND error IS NULL;
UPDATE jobs SET status = 'failed', finished_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), error =
    'This job was queued when kb upgraded the database to version 3, which cannot read its content. Add the content again.'
  WHERE status = 'queued' AND (kind = 'file' OR trim(COALESCE(text, '')) = '');

-- Remove the names and hashes of a deleted document from its jobs, as forget_document in ../../sql/jobs.sql does.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = '[]', content_hash = NULL,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id NOT IN (SELECT id FROM documents);

-- Use the name of the last job. A note's title counts as given if the note has text. Read each table once, because
-- indexes do not exist yet.
UPDATE documents SET uploaded_as = named.filename
  FROM (SELECT document_id, filename, max(id) FROM jobs WHERE filename <> '' GROUP BY document_id) AS named
  WHERE named.document_id = documents.id;
UPDATE documents SET title_given = CASE doc_type
    WHEN 'note' THEN id IN (SELECT document_id FROM chunks WHERE document_id IS NOT NULL)
    ELSE (id, title) IN (SELECT document_id, title FROM jobs WHERE document_id IS NOT NULL AND title IS NOT NULL)
  END;

-- Store tags and paths in composed form. A document with both forms of a tag gets it once.
INSERT OR IGNORE INTO tags (name) SELECT DISTINCT nfc(name) FROM tags WHERE name <> nfc(name);
INSERT OR IGNORE INTO document_tags (document_id, tag_id)
  SELECT document_id, composed.id FROM document_tags
  JOIN tags AS decomposed ON decomposed.id = tag_id JOIN tags AS composed ON composed.name = nfc(decomposed.name)
  WHERE decomposed.name <> nfc(decomposed.name);
DELETE FROM document_tags WHERE tag_id IN (SELECT id FROM tags WHERE name <> nfc(name));
DELETE FROM tags WHERE name <> nfc(name);
UPDATE documents SET source_path = nfc(source_path) WHERE source_path <> nfc(source_path)
  AND nfc(source_path) NOT IN (SELECT source_path FROM documents WHERE source_path IS NOT NULL);

-- The chunks of a document have its title as header. A section gets the id of its first chunk. Until ../reanalysis.py
-- has indexed them again, texts of scripts without spaces are found by pairs of letters.
UPDATE chunks SET section_id = section.id, segmented = segmented(text), variants = NULL
  FROM (SELECT document_id AS under, min(id) AS id FROM chunks GROUP BY document_id) AS section
  WHERE section.under = document_id;
