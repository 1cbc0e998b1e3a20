-- The audit log.

-- name: insert_line
-- Insert a line.
INSERT INTO audit (at, by_key, client, action, document_id, job_id, key)
VALUES ($now, :by, :client, :action, :document_id, :job_id, :key)

-- name: select_lines
-- Select the lines that meet the condition, newest first. The condition joins the where_ parts below.
SELECT id, at, by_key, client, action, document_id, job_id, key FROM audit
WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_before
-- Lines before an id.
id < :before

-- name: where_document
-- Lines about a document.
document_id = :document_id

-- name: where_by
-- Lines of a key.
by_key = :by

-- name: expire
-- Delete lines older than the given days, or beyond the number of lines to keep, oldest first.
DELETE FROM audit WHERE id IN (
  SELECT id FROM audit WHERE at < $expiry OR id <= (SELECT max(id) FROM audit) - :lines ORDER BY id LIMIT :limit
) RETURNING id
