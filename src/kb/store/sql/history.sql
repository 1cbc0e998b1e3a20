-- Earlier versions and the bin. Triggers count the size of earlier contents, unless a store has none.

-- name: insert_version
-- Copy a document to its earlier versions before the transaction changes it.
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
-- Begin a document's next version.
UPDATE documents SET
  version = version + 1, changed_by = :by, changed_with = :client, changed_why = :why,
  operation = (SELECT id FROM operations WHERE key = :operation_key),
  updated_at = $greatest(CAST(:now AS $timestamp), COALESCE(updated_at, created_at))
WHERE id = :id

-- name: select_replacing
-- Select the replacements of a document.
SELECT id FROM documents WHERE replaces = :id

-- name: is_content_missing
-- Whether an earlier version has the same content as the document.
SELECT EXISTS (SELECT 1 FROM versions WHERE document_id = :id AND content_id IS NULL)

-- name: insert_content
-- Insert the content of an earlier version.
INSERT INTO former_contents (document_id, chunks) VALUES (:id, :chunks) RETURNING id

-- name: fill_content
-- Give this content to the earlier versions that have none.
UPDATE versions SET content_id = :content_id WHERE document_id = :id AND content_id IS NULL

-- name: select_content
-- Select the chunks of a content.
SELECT chunks FROM former_contents WHERE id = :id

-- name: state
-- The columns of a document or an earlier version after its tags.
created_at, updated_at, date, own_tags, uploaded_as AS filename, title_given, replaces, omitted, language, $optional_fields

-- name: select_versions
-- Select a document's versions below a number, newest first.
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
-- Select documents in the bin that meet the condition, last deleted first. The condition joins the where_ parts below.
SELECT
  bin.document_id AS id, title, source_path, doc_type, content_hash, tags, $state,
  bin.number, bin.part_of, deleted_at, deleted_by, deleted_with, deleted_why, bin.operation
FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE {condition} ORDER BY deleted_at DESC, bin.document_id DESC LIMIT :limit

-- name: where_document
-- One document.
bin.document_id = :id

-- name: where_before
-- Documents deleted before another one.
(deleted_at, bin.document_id) < (CAST(:deleted_at AS $timestamp), CAST(:id AS bigint))

-- name: where_file
-- Files that were at a path, or had a content.
doc_type <> 'note' AND (bin.document_id, bin.number) IN (
  SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND source_path = :source_path
  UNION SELECT document_id, number FROM versions WHERE doc_type <> 'note' AND content_hash = :content_hash
)

-- name: insert_binned
-- Move a document to the bin. Its last version was just copied.
INSERT INTO bin (document_id, number, part_of, deleted_at, deleted_by, deleted_with, deleted_why, operation)
SELECT document_id, number, part_of, CAST(:now AS $timestamp), :by, :client, :why,
  (SELECT id FROM operations WHERE key = :operation_key)
FROM versions
WHERE document_id = :id ORDER BY number DESC LIMIT 1

-- name: restore_document
-- Restore a document from the bin as its next version. If its containing document is gone, it becomes independent.
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
-- Remove a document from the bin.
DELETE FROM bin WHERE document_id = :id

-- name: select_binned_parts
-- Select the parts of a document that are in the bin.
SELECT document_id FROM bin WHERE part_of = :id ORDER BY document_id

-- name: delete_versions
-- Delete a document's earlier versions. Return the fields that name their files.
DELETE FROM versions WHERE document_id = :id RETURNING content_hash, doc_type

-- name: delete_contents
-- Delete the contents of a document's earlier versions.
DELETE FROM former_contents WHERE document_id = :id

-- name: select_changed
-- Select the documents that were added, changed or deleted at or after a time.
SELECT id FROM documents WHERE COALESCE(updated_at, created_at) >= CAST(:moment AS $timestamp)
UNION SELECT document_id FROM versions WHERE until >= CAST(:moment AS $timestamp)

-- name: select_expired_bin
-- Select the documents that were in the bin for the given days.
SELECT document_id, deleted_at FROM bin WHERE deleted_at <= $expiry ORDER BY deleted_at LIMIT :limit

-- name: select_oldest
-- Select the earlier versions that ended the given days ago, oldest first, except versions in the bin.
SELECT document_id, number FROM versions
WHERE until <= $expiry
  AND NOT EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)
ORDER BY until, document_id, number LIMIT :limit

-- name: delete_version
-- Delete one earlier version.
DELETE FROM versions WHERE document_id = :id AND number = :number RETURNING until, content_id, content_hash, doc_type

-- name: delete_unused_content
-- Delete a content that no earlier version uses.
DELETE FROM former_contents
WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id)

-- name: begin_later
-- Record that history is incomplete before a time.
UPDATE history SET begins = $greatest(COALESCE(begins, CAST(:moment AS $timestamp)), CAST(:moment AS $timestamp))

-- name: select_history
-- Select the time from which history is complete, and its bytes.
SELECT begins, size FROM history

-- name: select_bin_size
-- Count the bytes of the contents in the bin.
SELECT CAST(COALESCE(sum(octet_length(chunks) + COALESCE(octet_length(vectors), 0)), 0) AS bigint) FROM former_contents
WHERE id IN (
  SELECT content_id FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
)

-- name: count_history
-- Count the earlier versions, and the documents in the bin.
SELECT (SELECT count(*) FROM versions), (SELECT count(*) FROM bin)
