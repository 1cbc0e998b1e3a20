-- Who did what.

-- name: insert_line
-- A line.
INSERT INTO audit (by_key, client, action, document_id, job_id, key)
VALUES (%(by)s, %(client)s, %(action)s, %(document_id)s, %(job_id)s, %(key)s)

-- name: select_lines
-- Lines; the condition is put in.
SELECT id, at, by_key, client, action, document_id, job_id, key FROM audit
WHERE {condition} ORDER BY id DESC LIMIT %s

-- name: expire
-- Lines go that are older than some days, or come before the last so many; the oldest first.
DELETE FROM audit WHERE id IN (
  SELECT id FROM audit
  WHERE at < LEAST(now_ms(), %s::timestamptz) - make_interval(days => %s) OR id <= (SELECT max(id) FROM audit) - %s
  ORDER BY id LIMIT %s
) RETURNING id
