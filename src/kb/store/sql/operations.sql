-- What belongs together and is taken back together.

-- name: note
-- An operation, unless it is known; its number.
INSERT INTO operations (key, at, by_key, client)
SELECT :operation_key, CAST(:now AS $timestamp), :by, :client
WHERE NOT EXISTS (SELECT 1 FROM operations WHERE key = :operation_key)
ON CONFLICT DO NOTHING RETURNING id

-- name: trim
-- The oldest operations are forgotten when there are more than so many above them.
DELETE FROM operations WHERE id <= :id

-- name: select
-- Operations, newest first; the condition is put in, of what follows.
SELECT id, key, at, by_key, client FROM operations WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_number
-- It is one.
id = :id

-- name: where_before
-- It came before another.
id < :before

-- name: where_by
-- One caller made it.
by_key IS NOT DISTINCT FROM :by

-- name: where_left
-- Something is left of it that could be taken back.
(
  EXISTS (SELECT 1 FROM documents WHERE documents.operation = operations.id)
  OR EXISTS (SELECT 1 FROM versions WHERE versions.operation = operations.id)
  OR EXISTS (SELECT 1 FROM bin WHERE bin.operation = operations.id)
  OR EXISTS (
    SELECT 1 FROM jobs WHERE jobs.operation_key = operations.key AND jobs.status IN ('queued', 'running')
  )
)

-- name: select_documents
-- The documents that an operation added, changed or deleted.
SELECT id FROM documents WHERE operation = :id
UNION SELECT document_id FROM versions WHERE operation = :id
UNION SELECT document_id FROM bin WHERE operation = :id

-- name: select_jobs
-- The jobs of an operation that are not done yet.
SELECT id FROM jobs WHERE operation_key = :key AND status IN ('queued', 'running') ORDER BY id

-- name: count
-- How many documents an operation added or took out of the bin, changed and deleted. One that was in the bin was not
-- there for a while before its next version.
WITH made AS (
  SELECT id AS document_id, version AS number, COALESCE(updated_at, created_at) AS at FROM documents
  WHERE operation = :id
  UNION ALL SELECT document_id, number, COALESCE(updated_at, created_at) FROM versions WHERE operation = :id
), added AS (
  SELECT document_id FROM made WHERE number = 1
  UNION SELECT made.document_id FROM made JOIN versions AS before
    ON before.document_id = made.document_id AND before.number = made.number - 1 AND before.until < made.at
)
SELECT
  (SELECT count(*) FROM added),
  (SELECT count(DISTINCT document_id) FROM made WHERE document_id NOT IN (SELECT document_id FROM added)),
  (SELECT count(*) FROM bin WHERE operation = :id)
