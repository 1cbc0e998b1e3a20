-- Operations, and the folders that are kept in step.

-- name: note
-- An operation, unless it is known; its number.
INSERT INTO operations (key, at, by_key, client)
SELECT :operation_key, :now, :by, :client WHERE NOT EXISTS (SELECT 1 FROM operations WHERE key = :operation_key)
RETURNING id

-- name: trim
-- The oldest operations are forgotten when there are more than so many above them.
DELETE FROM operations WHERE id <= ?

-- name: select
-- Operations; the condition is put in.
SELECT id, key, at, by_key, client FROM operations WHERE {condition}

-- name: select_documents
-- The documents that an operation added, changed or deleted.
SELECT id FROM documents WHERE operation = :id
UNION SELECT document_id FROM versions WHERE operation = :id
UNION SELECT document_id FROM bin WHERE operation = :id

-- name: select_jobs
-- The jobs of an operation that are not done yet.
SELECT id FROM jobs WHERE operation_key = ? AND status IN ('queued', 'running') ORDER BY id

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

-- name: select_folders
-- The folders that are kept in step.
SELECT prefix, machine, host, path, mounts, at FROM folders ORDER BY prefix

-- name: put_folder
-- A folder is kept in step from where it is now.
INSERT INTO folders (prefix, machine, host, path, mounts, at) VALUES (:prefix, :machine, :host, :path, :mounts, :at)
ON CONFLICT (prefix) DO UPDATE SET
  machine = :machine, host = :host, path = :path, mounts = :mounts, at = :at

-- name: delete_folder
-- A folder is not kept in step any more.
DELETE FROM folders WHERE prefix = ?

-- name: select_left_out
-- The files that stay out.
SELECT source_path FROM left_out ORDER BY source_path

-- name: leave_out
-- A file stays out.
INSERT INTO left_out (source_path) VALUES (?) ON CONFLICT DO NOTHING

-- name: let_in
-- A file does not stay out any more.
DELETE FROM left_out WHERE source_path = ?
