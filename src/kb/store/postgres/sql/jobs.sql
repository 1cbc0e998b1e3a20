-- The queue, which several engines have.

-- name: new_id
-- The id of a new job.
DEFAULT

-- name: tell_job
-- A word to those who wait for a job.
, pg_notify('kb_jobs', '')

-- name: tell_end
-- A word to those who wait for the end of one.
, pg_notify('kb_ends', id::text)

-- name: unless_locked
-- What another engine has locked is left out.
FOR UPDATE SKIP LOCKED

-- name: is_here
-- That a file is where it can be had.
staged_at IS NULL

-- name: is_mine
-- That this engine runs a job.
run_by = :engine

-- name: is_held
-- That a job may be ended here: none that another engine runs, or has ended.
(status = 'queued' OR status = 'running' AND $is_mine)

-- name: gone
-- That no other engine runs a job: the number of one that does is locked.
(run_by IS NULL OR run_by = :engine OR run_by NOT IN (
  SELECT objid::int FROM pg_locks
  WHERE locktype = 'advisory' AND classid = :class::int::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
))

-- name: no_tags
-- A list of none.
'{}'

-- name: by_failed_path
-- The index of those that failed, which is found without being named.

-- name: by_done
-- The index of those that are done, likewise.

-- name: begin
-- A job begins.
status = 'running', attempts = attempts + 1, started_at = $now, heartbeat_at = $now, run_by = :engine

-- name: queue_age
-- For how many seconds the oldest queued job has waited; nothing if there is none.
SELECT extract(epoch FROM clock_timestamp() - created_at)::double precision
FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Queued jobs begin: those that were begun before, or those that were not. What was begun less often goes first, but not
-- before what came earlier for the same path, or runs elsewhere, and those that were begun before wait for all of that.
-- What another engine claims at the moment is passed over, and so is what has its file where it cannot be had now, with
-- what comes after it for the same path.
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
-- New short notes, which may overtake files, however many of those wait; none that comes after another job for its path.
-- What stands for a NUL is one byte.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND $is_here
  AND octet_length(replace(text, U&'\FDD0', ' ')) <= :size AND $unless_earlier
ORDER BY id LIMIT :limit $unless_locked

-- name: release_stalled
-- Running jobs are queued again that gave no sign of life for so many seconds; that is no attempt.
UPDATE jobs SET status = 'queued', attempts = GREATEST(attempts - 1, 0)
WHERE id IN (
  SELECT id FROM jobs WHERE status = 'running' AND heartbeat_at <= $seconds_ago AND (:seconds > 0 OR $gone) $unless_locked
) RETURNING id

-- name: release_gone
-- Running jobs of other engines are queued again that gave no sign of life for so many seconds, and whose engine is gone;
-- that was an attempt, for it may be why it is gone. What is about to end is passed over.
UPDATE jobs SET status = 'queued'
WHERE id IN (
  SELECT id FROM jobs WHERE status = 'running' AND run_by <> :engine AND heartbeat_at <= $seconds_ago AND $gone
  $unless_locked
)

-- name: count_engines
-- How many engines there are: the number of each is locked.
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND classid = :class::int::oid AND objsubid = 2 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: select_left
-- The staged files of jobs that are in a data directory still.
SELECT staged FROM jobs WHERE staged IS NOT NULL AND staged_at = :place

-- name: set_brought
-- A staged file is where every engine has it.
UPDATE jobs SET staged_at = NULL WHERE staged = :staged
