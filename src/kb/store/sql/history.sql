-- Former versions and the bin. Triggers count what the former contents take, unless a store has none.

-- name: insert_version
-- A document as it stands becomes a former version: what follows in the transaction changes it.
INSERT INTO versions (
  document_id, number, title, source_path, doc_type, content_hash, tags, created_at, updated_at, until, $date, own_tags,
  part_of, uploaded_as, title_given, changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
)
SELECT
  id, version, title, source_path, doc_type, content_hash, $tags, created_at, updated_at,
  $greatest(CAST(:now AS $timestamp), COALESCE(updated_at, created_at)), $date, own_tags, part_of, uploaded_as, title_given,
  changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
FROM documents WHERE id = :id

-- name: begin_version
-- A document is of its next version, and changes now.
UPDATE documents SET
  version = version + 1, changed_by = :by, changed_with = :client, changed_why = :why,
  operation = (SELECT id FROM operations WHERE key = :operation_key),
  updated_at = $greatest(CAST(:now AS $timestamp), COALESCE(updated_at, created_at))
WHERE id = :id

-- name: select_replacing
-- What stands in the place of a document.
SELECT id FROM documents WHERE replaces = :id

-- name: is_content_missing
-- Whether a former version held what the document holds still.
SELECT EXISTS (SELECT 1 FROM versions WHERE document_id = :id AND content_id IS NULL)

-- name: insert_content
-- What a document held.
INSERT INTO former_contents (document_id, chunks) VALUES (:id, :chunks) RETURNING id

-- name: fill_content
-- The former versions of a document that have no content have this one.
UPDATE versions SET content_id = :content_id WHERE document_id = :id AND content_id IS NULL

-- name: select_content
-- The chunks of a content.
SELECT chunks FROM former_contents WHERE id = :id

-- name: state
-- The columns of what a document was, or is, behind its tags.
created_at, updated_at, date, own_tags, uploaded_as AS filename, title_given, replaces, omitted, language, $optional_fields

-- name: select_versions
-- The versions of a document below a number, the newest first.
SELECT
  id, title, source_path, doc_type, content_hash, $tags AS tags, $state, version AS number,
  CAST(NULL AS $timestamp) AS until, changed_by, changed_with, changed_why, CAST(NULL AS bigint) AS content_id, operation
FROM documents WHERE id = :id AND version < :before
UNION ALL
SELECT
  document_id AS id, title, source_path, doc_type, content_hash, tags, $state, number,
  until, changed_by, changed_with, changed_why, content_id, operation
FROM versions WHERE document_id = :id AND number < :before
ORDER BY number DESC LIMIT :limit

-- name: select_bin
-- Documents in the bin, the last deleted first; the condition is put in, of what follows.
SELECT
  bin.document_id AS id, title, source_path, doc_type, content_hash, tags, $state,
  bin.number, bin.part_of, deleted_at, deleted_by, deleted_with, deleted_why, bin.operation
FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE {condition} ORDER BY deleted_at DESC, bin.document_id DESC LIMIT :limit

-- name: where_document
-- It is one document.
bin.document_id = :id

-- name: where_before
-- It was deleted before another.
(deleted_at, bin.document_id) < (CAST(:deleted_at AS $timestamp), CAST(:id AS bigint))

-- name: where_file
-- It is a file that was at a path, or held a content.
doc_type <> 'note' AND (bin.document_id, bin.number) IN (
  SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND source_path = :source_path
  UNION SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND content_hash = :content_hash
)

-- name: insert_binned
-- A document goes to the bin, whose last version was just kept.
INSERT INTO bin (document_id, number, part_of, deleted_at, deleted_by, deleted_with, deleted_why, operation)
SELECT document_id, number, part_of, CAST(:now AS $timestamp), :by, :client, :why,
  (SELECT id FROM operations WHERE key = :operation_key)
FROM versions
WHERE document_id = :id ORDER BY number DESC LIMIT 1

-- name: restore_document
-- A document comes back from the bin, as its next version; by itself, if what it came in is not there.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, created_at, updated_at, $date, own_tags, part_of, uploaded_as,
  title_given, version, changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
)
SELECT
  document_id, title, source_path, doc_type, content_hash, created_at,
  $greatest(CAST(:now AS $timestamp), $after_until), $date, own_tags,
  CASE WHEN part_of IN (SELECT id FROM documents) THEN part_of END, uploaded_as, title_given, number + 1,
  :by, :client, :why, $optional_fields, CAST(:replaces AS bigint), omitted, :language,
  (SELECT id FROM operations WHERE key = :operation_key)
FROM versions WHERE document_id = :id ORDER BY number DESC LIMIT 1

-- name: delete_binned
-- A document is not in the bin any more.
DELETE FROM bin WHERE document_id = :id

-- name: select_binned_parts
-- The documents in the bin that came inside one.
SELECT document_id FROM bin WHERE part_of = :id ORDER BY document_id

-- name: delete_versions
-- The former versions of a document; the files that they came from.
DELETE FROM versions WHERE document_id = :id RETURNING content_hash, doc_type

-- name: delete_contents
-- What the former versions of a document held.
DELETE FROM former_contents WHERE document_id = :id

-- name: select_changed
-- The documents that changed, or were added or deleted, after a moment.
SELECT id FROM documents WHERE COALESCE(updated_at, created_at) > CAST(:moment AS $timestamp)
UNION SELECT document_id FROM versions WHERE until > CAST(:moment AS $timestamp)

-- name: select_expired_bin
-- Documents that have been in the bin for so many days.
SELECT document_id, deleted_at FROM bin WHERE deleted_at <= $expiry ORDER BY deleted_at LIMIT :limit

-- name: select_oldest
-- The former versions that went first, so many days ago, but those that are in the bin.
SELECT document_id, number FROM versions
WHERE until <= $expiry
  AND NOT EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)
ORDER BY until, document_id, number LIMIT :limit

-- name: delete_version
-- A former version by itself.
DELETE FROM versions WHERE document_id = :id AND number = :number RETURNING until, content_id, content_hash, doc_type

-- name: delete_unused_content
-- A content that no former version has.
DELETE FROM former_contents
WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id)

-- name: begin_later
-- Former versions are missing that stood before a moment.
UPDATE history SET begins = $greatest(COALESCE(begins, CAST(:moment AS $timestamp)), CAST(:moment AS $timestamp))

-- name: select_history
-- From when on history is whole, and how many bytes it takes.
SELECT begins, size FROM history

-- name: select_bin_size
-- How many bytes the contents of what is in the bin take.
SELECT CAST(COALESCE(sum(octet_length(chunks) + COALESCE(octet_length(vectors), 0)), 0) AS bigint) FROM former_contents
WHERE id IN (
  SELECT content_id FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
)

-- name: count_history
-- How many former versions there are, and how many documents in the bin.
SELECT (SELECT count(*) FROM versions), (SELECT count(*) FROM bin)
