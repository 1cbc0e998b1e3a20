-- The queue of one engine.

-- name: by_failed_path
-- The index of failed jobs.
INDEXED BY jobs_failed_path

-- name: by_done
-- The index of finished jobs.
INDEXED BY jobs_done

-- name: begin
-- Begin a job.
status = 'running', attempts = attempts + 1, started_at = $now, heartbeat_at = $now

-- name: take_job_ids
-- Reserve ids of jobs above every id that was ever used, and return the last one.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM jobs)) + :count WHERE name = 'jobs' RETURNING id

-- name: queue_age
-- The seconds that the oldest queued job has waited, or NULL.
SELECT 86400 * (julianday($now) - julianday(created_at)) FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Begin queued jobs, either jobs with earlier attempts or jobs without. Fewer attempts come first, but never before an
-- earlier job for the same path. Jobs with earlier attempts wait for all of these. Files can be left out, along with
-- later jobs for their paths.
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
-- Select new short notes, which may overtake any number of files, without a note that follows another job for its path.
-- The function length would end at a NUL.
SELECT id, staged FROM jobs AS next INDEXED BY jobs_new_notes
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND octet_length(text) <= :size AND $unless_earlier
ORDER BY id LIMIT :limit

-- name: release_stalled
-- Queue again the running jobs without a recent sign of life. The attempt does not count. A sign of life from the
-- future was written while the clock was wrong.
UPDATE jobs SET status = 'queued', attempts = max(attempts - 1, 0)
WHERE status = 'running' AND (heartbeat_at <= $seconds_ago OR heartbeat_at > $now)
RETURNING id
