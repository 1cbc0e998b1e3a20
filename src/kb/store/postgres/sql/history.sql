-- Former versions and the bin.

-- name: insert_version
-- A document as it stands becomes a former version: what follows in the transaction changes it.
INSERT INTO versions (
  document_id, number, title, source_path, doc_type, content_hash, tags, created_at, updated_at, until, date, own_day,
  own_tags, part_of, uploaded_as, title_given, changed_by, changed_with, changed_why, source, replaces, omitted, language,
  operation
)
SELECT
  id, version, title, source_path, doc_type, content_hash,
  ARRAY(SELECT tag FROM document_tags WHERE document_id = documents.id ORDER BY tag),
  created_at, updated_at, GREATEST(%(now)s::timestamptz, updated_at, created_at), date, own_day, own_tags, part_of,
  uploaded_as, title_given, changed_by, changed_with, changed_why, source, replaces, omitted, language, operation
FROM documents WHERE id = %(id)s

-- name: begin_version
-- A document is of its next version, and changes now.
UPDATE documents SET
  version = version + 1, changed_by = %(by)s, changed_with = %(client)s, changed_why = %(why)s,
  operation = (SELECT id FROM operations WHERE key = %(operation_key)s),
  updated_at = GREATEST(%(now)s::timestamptz, updated_at, created_at)
WHERE id = %(id)s

-- name: select_replacing
-- What stands in the place of a document.
SELECT id FROM documents WHERE replaces = %s

-- name: is_content_missing
-- Whether a former version held what the document holds still.
SELECT EXISTS (SELECT 1 FROM versions WHERE document_id = %s AND content_id IS NULL)

-- name: insert_content
-- What a document held.
INSERT INTO former_contents (document_id, chunks) VALUES (%s, %s) RETURNING id

-- name: fill_content
-- The former versions of a document that have no content have this one.
UPDATE versions SET content_id = %s WHERE document_id = %s AND content_id IS NULL

-- name: change_size
-- Former contents take so many bytes more.
UPDATE history SET size = size + %s

-- name: select_content
-- The chunks of a content.
SELECT chunks FROM former_contents WHERE id = %s

-- name: select_current
-- Documents as they stand; the condition is put in.
SELECT
  version AS number, NULL::timestamptz AS until, changed_by, changed_with, changed_why, NULL::bigint AS content_id, operation,
  id, title, source_path, doc_type, content_hash,
  (SELECT COALESCE(json_agg(tag ORDER BY tag)::text, '[]') FROM document_tags WHERE document_id = documents.id) AS tags,
  created_at, updated_at, date, array_to_json(own_tags)::text AS own_tags, uploaded_as AS filename, title_given, source,
  replaces, omitted, language
FROM documents WHERE {condition}

-- name: select_versions
-- Former versions; the condition is put in.
SELECT
  number, until, changed_by, changed_with, changed_why, content_id, operation,
  document_id AS id, title, source_path, doc_type, content_hash, array_to_json(tags)::text AS tags, created_at, updated_at,
  date, array_to_json(own_tags)::text AS own_tags, uploaded_as AS filename, title_given, source, replaces, omitted,
  language
FROM versions WHERE {condition}

-- name: select_bin
-- Documents in the bin; the condition is put in.
SELECT
  bin.number, bin.part_of, deleted_at, deleted_by, deleted_with, deleted_why, bin.operation,
  bin.document_id AS id, title, source_path, doc_type, content_hash, array_to_json(tags)::text AS tags, created_at,
  updated_at, date, array_to_json(own_tags)::text AS own_tags, uploaded_as AS filename, title_given, source, replaces,
  omitted, language
FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE {condition}

-- name: insert_binned
-- A document goes to the bin, whose last version was just kept.
INSERT INTO bin (document_id, number, part_of, deleted_at, deleted_by, deleted_with, deleted_why, operation)
SELECT document_id, number, part_of, %(now)s::timestamptz, %(by)s, %(client)s, %(why)s,
  (SELECT id FROM operations WHERE key = %(operation_key)s)
FROM versions
WHERE document_id = %(id)s ORDER BY number DESC LIMIT 1

-- name: restore_document
-- A document comes back from the bin, as its next version; by itself, if what it came in is not there.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, created_at, updated_at, date, own_day, own_tags, part_of, uploaded_as,
  title_given, version, changed_by, changed_with, changed_why, source, replaces, omitted, language, operation
)
SELECT
  document_id, title, source_path, doc_type, content_hash, created_at, GREATEST(%(now)s::timestamptz, until + interval '1 millisecond'), date, own_day,
  own_tags, CASE WHEN part_of IN (SELECT id FROM documents) THEN part_of END, uploaded_as, title_given, number + 1,
  %(by)s, %(client)s, %(why)s, source, %(replaces)s::bigint, omitted, %(language)s,
  (SELECT id FROM operations WHERE key = %(operation_key)s)
FROM versions WHERE document_id = %(id)s ORDER BY number DESC LIMIT 1

-- name: delete_binned
-- A document is not in the bin any more.
DELETE FROM bin WHERE document_id = %s

-- name: select_binned_parts
-- The documents in the bin that came inside one.
SELECT document_id FROM bin WHERE part_of = %s ORDER BY document_id

-- name: delete_versions
-- The former versions of a document; the files that they came from.
DELETE FROM versions WHERE document_id = %s RETURNING content_hash, doc_type

-- name: delete_contents
-- What the former versions of a document held.
WITH gone AS (
  DELETE FROM former_contents WHERE document_id = %s RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)

-- name: select_changed
-- The documents that changed, or were added or deleted, after a moment.
SELECT id FROM documents WHERE COALESCE(updated_at, created_at) > %(moment)s
UNION SELECT document_id FROM versions WHERE until > %(moment)s

-- name: select_expired_bin
-- Documents that have been in the bin for so many days.
SELECT document_id, deleted_at FROM bin WHERE deleted_at <= LEAST(now_ms(), %s::timestamptz) - make_interval(days => %s) ORDER BY deleted_at LIMIT %s

-- name: select_oldest
-- The former versions that went first, but those that are in the bin.
SELECT document_id, number FROM versions
WHERE until <= LEAST(now_ms(), %s::timestamptz) - make_interval(days => %s)
  AND NOT EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)
ORDER BY until, document_id, number LIMIT %s

-- name: delete_version
-- A former version by itself.
DELETE FROM versions WHERE document_id = %s AND number = %s RETURNING until, content_id, content_hash, doc_type

-- name: delete_unused_content
-- A content that no former version has.
WITH gone AS (
  DELETE FROM former_contents
  WHERE id = %(id)s AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = %(id)s)
  RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)

-- name: begin_later
-- Former versions are missing that stood before a moment.
UPDATE history SET begins = GREATEST(begins, %s::timestamptz)

-- name: select_history
-- From when on history is whole, and how many bytes it takes.
SELECT begins, size FROM history

-- name: select_bin_size
-- How many bytes the contents of what is in the bin take.
SELECT COALESCE(sum(octet_length(chunks) + COALESCE(octet_length(vectors), 0)), 0)::bigint FROM former_contents
WHERE id IN (
  SELECT content_id FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
)

-- name: count_history
-- How many former versions there are, and how many documents in the bin.
SELECT (SELECT count(*) FROM versions), (SELECT count(*) FROM bin)
