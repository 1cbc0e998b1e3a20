-- The queue of several engines.

-- name: new_id
-- The id of a new job.
DEFAULT

-- name: tell_job
-- Notify the workers of a new job.
, pg_notify('kb_jobs', '')

-- name: tell_end
-- Notify the waiting requests that a job has ended.
, pg_notify('kb_ends', id::text)

-- name: unless_locked
-- Skip jobs that another engine has locked.
FOR UPDATE SKIP LOCKED

-- name: is_here
-- The job's file is available to every engine.
staged_at IS NULL

-- name: is_mine
-- This engine runs the job.
run_by = :engine

-- name: is_held
-- This engine may end the job: no other engine runs it, and it has not ended.
(status = 'queued' OR status = 'running' AND $is_mine)

-- name: gone
-- No other engine runs the job. A running engine keeps its number locked.
(run_by IS NULL OR run_by = :engine OR run_by NOT IN (
  SELECT objid::int FROM pg_locks
  WHERE locktype = 'advisory' AND classid = :class::int::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
))

-- name: no_tags
-- An empty list of tags.
'{}'

-- name: by_failed_path
-- The index of failed jobs. PostgreSQL finds it without its name.

-- name: by_done
-- The index of finished jobs. PostgreSQL finds it without its name.

-- name: begin
-- Begin a job.
status = 'running', attempts = attempts + 1, started_at = $now, heartbeat_at = $now, run_by = :engine

-- name: queue_age
-- Select the seconds that the oldest queued job has waited.
SELECT extract(epoch FROM clock_timestamp() - created_at)::double precision
FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Begin queued jobs, either jobs with earlier attempts or jobs without. Fewer attempts come first, but never before an
-- earlier job for the same path, or while another engine runs one. Jobs with earlier attempts wait for all of these.
-- Skip jobs that another engine is claiming, jobs whose file is not available, and later jobs for their paths.
UPDATE jobs SET $begin
WHERE id IN (
  SELECT id FROM jobs AS next
  WHERE status = 'queued' AND (attempts > 0) = :begun AND (staged IS NULL OR :files AND $is_here) AND NOT EXISTS (
    SELECT 1 FROM jobs AS earlier
    WHERE earlier.id < next.id AND earlier.source_path = next.source_path
      AND (earlier.status = 'queued' AND (
          earlier.attempts > next.attempts OR :begun
          OR earlier.staged IS NOT NULL AND NOT (:files AND earlier.staged_at IS NULL)
        )
        OR earlier.status = 'running' AND earlier.run_by <> :engine)
  )
  ORDER BY attempts, id LIMIT :limit $unless_locked
) RETURNING id

-- name: select_short_notes
-- Select new short notes, which may overtake any number of files, without a note that follows another job for its path.
-- The character that replaces a NUL counts as one byte.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND $is_here
  AND octet_length(replace(text, U&'\FDD0', ' ')) <= :size AND $unless_earlier
ORDER BY id LIMIT :limit $unless_locked

-- name: release_stalled
-- Queue again the running jobs without a recent sign of life. The attempt does not count.
UPDATE jobs SET status = 'queued', attempts = GREATEST(attempts - 1, 0)
WHERE id IN (
  SELECT id FROM jobs WHERE status = 'running' AND heartbeat_at <= $seconds_ago AND (:seconds > 0 OR $gone) $unless_locked
) RETURNING id

-- name: release_gone
-- Queue again the running jobs of other engines without a recent sign of life whose engine is gone. The attempt counts,
-- because the job may have ended the engine. Skip jobs that are about to end.
UPDATE jobs SET status = 'queued'
WHERE id IN (
  SELECT id FROM jobs WHERE status = 'running' AND run_by <> :engine AND heartbeat_at <= $seconds_ago AND $gone
  $unless_locked
)

-- name: count_engines
-- Count the engines. Each keeps its number locked.
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND classid = :class::int::oid AND objsubid = 2 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: select_left
-- Select the staged files of jobs that are still in a data folder.
SELECT staged FROM jobs WHERE staged IS NOT NULL AND staged_at = :place

-- name: set_brought
-- Record that a staged file is available to every engine.
UPDATE jobs SET staged_at = NULL WHERE staged = :staged
