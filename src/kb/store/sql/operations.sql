-- Operations: changes that belong together, and that an undo reverts together.

-- name: note
-- Insert an operation, unless it exists, and return its number.
INSERT INTO operations (key, at, by_key, client)
SELECT :operation_key, CAST(:now AS $timestamp), :by, :client
WHERE NOT EXISTS (SELECT 1 FROM operations WHERE key = :operation_key)
ON CONFLICT DO NOTHING RETURNING id

-- name: trim
-- Delete the oldest operations, up to an id.
DELETE FROM operations WHERE id <= :id

-- name: select
-- Select the operations that meet the condition, newest first. The condition joins the where_ parts below.
SELECT id, key, at, by_key, client FROM operations WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_number
-- An operation by number.
id = :id

-- name: where_key
-- The operation with a key.
key = :key

-- name: where_before
-- Operations before a number.
id < :before

-- name: where_by
-- Operations of a caller.
by_key IS NOT DISTINCT FROM :by

-- name: where_left
-- Operations with changes that an undo could still revert.
(
  EXISTS (SELECT 1 FROM documents WHERE documents.operation = operations.id)
  OR EXISTS (SELECT 1 FROM versions WHERE versions.operation = operations.id)
  OR EXISTS (SELECT 1 FROM bin WHERE bin.operation = operations.id)
  OR EXISTS (
    SELECT 1 FROM jobs WHERE jobs.operation_key = operations.key AND jobs.status IN ('queued', 'running')
  )
)

-- name: select_documents
-- Select the documents that an operation added, changed or deleted.
SELECT id FROM documents WHERE operation = :id
UNION SELECT document_id FROM versions WHERE operation = :id
UNION SELECT document_id FROM bin WHERE operation = :id

-- name: select_jobs
-- Select the jobs of an operation that have not ended, and whose document is not stored.
SELECT id FROM jobs
WHERE operation_key = :key AND status IN ('queued', 'running') AND document_id IS NULL ORDER BY id

-- name: count
-- Count the documents that an operation added or restored, changed, deleted, and restored. A gap before a version means
-- that the document was in the bin.
WITH made AS (
  SELECT id AS document_id, version AS number, COALESCE(updated_at, created_at) AS at FROM documents
  WHERE operation = :id
  UNION ALL SELECT document_id, number, COALESCE(updated_at, created_at) FROM versions WHERE operation = :id
), restored AS (
  SELECT DISTINCT made.document_id FROM made JOIN versions AS before
    ON before.document_id = made.document_id AND before.number = made.number - 1 AND before.until < made.at
), added AS (
  SELECT document_id FROM made WHERE number = 1 UNION SELECT document_id FROM restored
)
SELECT
  (SELECT count(*) FROM added),
  (SELECT count(DISTINCT document_id) FROM made WHERE document_id NOT IN (SELECT document_id FROM added)),
  (SELECT count(*) FROM bin WHERE operation = :id),
  (SELECT count(*) FROM restored)
