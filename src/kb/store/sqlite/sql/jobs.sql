-- The queue, which one engine has.

-- name: by_failed_path
-- The index of those that failed.
INDEXED BY jobs_failed_path

-- name: by_done
-- The index of those that are done.
INDEXED BY jobs_done

-- name: begin
-- A job begins.
status = 'running', attempts = attempts + 1, started_at = $now, heartbeat_at = $now

-- name: take_job_ids
-- So many ids above every one that was ever given; the last of them.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM jobs)) + :count WHERE name = 'jobs' RETURNING id

-- name: queue_age
-- For how many seconds the oldest queued job has waited; NULL if there is none.
SELECT 86400 * (julianday($now) - julianday(created_at)) FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Queued jobs begin: those that were begun before, or those that were not. What was begun less often goes first, but not
-- before what came earlier for the same path, and those that were begun before wait for all of that. Files may be left
-- out, and what comes after one for its path then is, too.
UPDATE jobs SET $begin
WHERE id IN (
  SELECT id FROM jobs AS next INDEXED BY jobs_queue
  WHERE status = 'queued' AND (attempts > 0) = :begun AND (staged IS NULL OR :files) AND NOT EXISTS (
    SELECT 1 FROM jobs AS earlier INDEXED BY jobs_queued_path
    WHERE status IN ('queued', 'running') AND status = 'queued'
      AND (earlier.attempts > next.attempts OR :begun OR earlier.staged IS NOT NULL AND NOT :files)
      AND earlier.id < next.id AND earlier.source_path = next.source_path
  )
  ORDER BY attempts, id LIMIT :limit
) RETURNING id

-- name: select_short_notes
-- New short notes, which may overtake files, however many of those wait; none that comes after another job for its path.
-- (SQL's own `length` ends at a NUL.)
SELECT id, staged FROM jobs AS next INDEXED BY jobs_new_notes
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND octet_length(text) <= :size AND $unless_earlier
ORDER BY id LIMIT :limit

-- name: release_stalled
-- Running jobs are queued again that gave no sign of life for so many seconds; that is no attempt.
-- A sign from the future is that of a clock that was wrong.
UPDATE jobs SET status = 'queued', attempts = max(attempts - 1, 0)
WHERE status = 'running' AND (heartbeat_at <= $seconds_ago OR heartbeat_at > $now)
RETURNING id
