-- Who did what.

-- name: insert_line
-- A line.
INSERT INTO audit (at, by_key, client, action, document_id, job_id, key)
VALUES (kb_now(), :by, :client, :action, :document_id, :job_id, :key)

-- name: select_lines
-- Lines; {condition} is put in.
SELECT id, at, by_key, client, action, document_id, job_id, key FROM audit
WHERE {condition} ORDER BY id DESC LIMIT ?

-- name: expire
-- Lines go that are older than some days, as in '-365 days', or come before the last so many; the oldest first.
DELETE FROM audit WHERE id IN (
  SELECT id FROM audit
  WHERE at < strftime('%Y-%m-%d %H:%M:%f', kb_expiry(), ?) OR id <= (SELECT max(id) FROM audit) - ?
  ORDER BY id LIMIT ?
) RETURNING id
