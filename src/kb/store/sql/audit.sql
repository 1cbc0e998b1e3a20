-- Who did what.

-- name: insert_line
-- A line.
INSERT INTO audit (at, by_key, client, action, document_id, job_id, key)
VALUES ($now, :by, :client, :action, :document_id, :job_id, :key)

-- name: select_lines
-- Lines, newest first; the condition is put in, of what follows.
SELECT id, at, by_key, client, action, document_id, job_id, key FROM audit
WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_before
-- It was written before another.
id < :before

-- name: where_document
-- It is about one document.
document_id = :document_id

-- name: where_by
-- One key did it.
by_key = :by

-- name: expire
-- Lines go that are older than so many days, or come before the last so many; the oldest first.
DELETE FROM audit WHERE id IN (
  SELECT id FROM audit WHERE at < $expiry OR id <= (SELECT max(id) FROM audit) - :lines ORDER BY id LIMIT :limit
) RETURNING id
