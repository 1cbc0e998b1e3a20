-- The queue.

-- name: select_jobs
-- Jobs; the condition is put in.
SELECT
  id, status, kind, title, filename, source_path, array_to_json(tags)::text AS tags, progress, document_id, error,
  created_at, started_at, finished_at, attempts, text, staged, request_hash, content_hash, part_of, depth, sent_by,
  sent_with, sent_why, limits, source, replaces, existed, omitted, operation_key
FROM jobs WHERE {condition}

-- name: find_by_key
-- The job that was accepted under an idempotency key.
SELECT id FROM jobs WHERE idempotency_key = %s

-- name: insert_job
-- A queued job, and a word to those who wait for one; nothing if there is one under its key.
WITH added AS (
  INSERT INTO jobs (
    kind, title, source_path, tags, text, staged, filename, idempotency_key, request_hash, content_hash,
    part_of, depth, sent_by, sent_with, sent_why, limits, source, replaces,
    operation_key
  ) VALUES (
    %(kind)s, %(title)s, %(source_path)s, %(tags)s, %(text)s, %(staged)s, %(filename)s, %(idempotency_key)s,
    %(request_hash)s, %(content_hash)s, %(part_of)s, %(depth)s, %(by)s, %(client)s, %(why)s, %(limits)s, %(source)s,
    %(replaces)s, %(operation_key)s
  ) ON CONFLICT (idempotency_key) DO NOTHING RETURNING id
)
SELECT id, pg_notify('kb_jobs', '') FROM added

-- name: count_pending
-- How many jobs are queued or running; the condition is put in.
SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND {condition}

-- name: count_by_status
-- How many jobs there are in each state; the condition is put in.
SELECT status, count(*) FROM jobs WHERE {condition} GROUP BY status

-- name: queue_age
-- For how many seconds the oldest queued job has waited; nothing if there is none.
SELECT extract(epoch FROM clock_timestamp() - created_at)::double precision
FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Queued jobs begin: those that were begun before, or those that were not. What was begun less often goes first, but not
-- before what came earlier for the same path, or runs elsewhere, and those that were begun before wait for all of that. What another engine claims at the moment is passed over,
-- and so is what has its file where it cannot be had now, with what comes after it for the same path.
UPDATE jobs SET
  status = 'running', attempts = attempts + 1, started_at = now_ms(), heartbeat_at = now_ms(), run_by = %(engine)s
WHERE id IN (
  SELECT id FROM jobs AS next
  WHERE status = 'queued' AND (attempts > 0) = %(begun)s AND (staged IS NULL OR %(files)s AND staged_at IS NULL) AND NOT EXISTS (
    SELECT 1 FROM jobs AS earlier
    WHERE earlier.id < next.id AND earlier.source_path = next.source_path
      AND (earlier.status = 'queued' AND (
          earlier.attempts > next.attempts OR %(begun)s OR earlier.staged IS NOT NULL AND NOT (%(files)s AND earlier.staged_at IS NULL)
        )
        OR earlier.status = 'running' AND earlier.run_by <> %(engine)s)
  )
  ORDER BY attempts, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING id

-- name: select_short_notes
-- New short notes, which may overtake files, however many of those wait; none that comes after another job for its path.
-- What stands for a NUL is one byte.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND staged_at IS NULL
  AND octet_length(replace(text, U&'\FDD0', ' ')) <= %s
  AND NOT EXISTS (
    SELECT 1 FROM jobs AS earlier
    WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
  )
ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED

-- name: select_new_files
-- New files, whose length is not known here; none that comes after another job for its path.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NOT NULL AND staged_at IS NULL AND NOT EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
)
ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED

-- name: claim_these
-- These jobs begin.
UPDATE jobs SET
  status = 'running', attempts = attempts + 1, started_at = now_ms(), heartbeat_at = now_ms(), run_by = %s
WHERE id = ANY(%s) RETURNING id

-- name: heartbeat
-- Jobs are still being worked on. Those that a write ends at the moment are passed over: who waited for it would keep
-- every engine from claiming.
UPDATE jobs SET heartbeat_at = now_ms() WHERE id IN (
  SELECT id FROM jobs WHERE id = ANY(%s) AND status = 'running' AND run_by = %s FOR UPDATE SKIP LOCKED
)

-- name: set_progress
-- How far a job is, if it is still there.
UPDATE jobs SET progress = %s WHERE id = %s RETURNING id

-- name: set_started
-- A job was begun so many seconds ago; before, it waited for others that were claimed with it.
UPDATE jobs SET started_at = now_ms() - make_interval(secs => %s) WHERE id = %s

-- name: give_up
-- Running jobs fail that were begun so often and that no other engine runs.
UPDATE jobs SET status = 'failed', error = %(error)s, finished_at = now_ms()
WHERE status = 'running' AND attempts >= %(attempts)s AND {gone}
RETURNING id, pg_notify('kb_ends', id::text)

-- name: gone
-- That no other engine runs a job: the number of one that does is locked.
(run_by IS NULL OR run_by = %(engine)s OR run_by NOT IN (
  SELECT objid::int FROM pg_locks
  WHERE locktype = 'advisory' AND classid = %(class)s::int::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
))

-- name: count_engines
-- How many engines there are: the number of each is locked.
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s::int::oid AND objsubid = 2 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())

-- name: release_all
-- Every running job is queued again that no other engine runs.
UPDATE jobs SET status = 'queued' WHERE status = 'running' AND {gone}

-- name: release_stalled
-- Running jobs are queued again that gave no sign of life for so many seconds; that is no attempt.
UPDATE jobs SET status = 'queued', attempts = GREATEST(attempts - 1, 0)
WHERE id IN (
  SELECT id FROM jobs
  WHERE status = 'running' AND heartbeat_at <= now_ms() - make_interval(secs => %(seconds)s)
    AND (%(seconds)s > 0 OR {gone})
  FOR UPDATE SKIP LOCKED
) RETURNING id

-- name: release_gone
-- Running jobs of other engines are queued again that gave no sign of life for so many seconds, and whose engine is gone;
-- that was an attempt, for it may be why it is gone. What is about to end is passed over.
UPDATE jobs SET status = 'queued'
WHERE id IN (
  SELECT id FROM jobs
  WHERE status = 'running' AND run_by <> %(engine)s AND heartbeat_at <= now_ms() - make_interval(secs => %(seconds)s)
    AND {gone}
  FOR UPDATE SKIP LOCKED
)

-- name: release
-- Running jobs are queued again; so many attempts do not count.
UPDATE jobs SET status = 'queued', attempts = attempts - %s
WHERE id = ANY(%s) AND status = 'running' AND run_by = %s

-- name: held
-- That a job may be ended here: none that another engine runs, or has ended.
(status = 'queued' OR status = 'running' AND run_by = %(engine)s)

-- name: finish
-- A job is done; its text is in the document now. Those who wait for its end hear of it, as of any other end.
UPDATE jobs SET
  status = 'done', document_id = %(document_id)s, existed = %(existed)s, omitted = %(omitted)s, progress = 1,
  finished_at = now_ms(), text = NULL, staged = NULL
WHERE id = %(id)s AND {held} RETURNING id, pg_notify('kb_ends', id::text)

-- name: fail
-- A job failed.
UPDATE jobs SET status = 'failed', error = %(error)s, finished_at = now_ms()
WHERE id = %(id)s AND {held} RETURNING id, pg_notify('kb_ends', id::text)

-- name: forget_failed
-- The jobs that came before one for its path, and failed for what they held, go: the file is whole now.
-- One with an idempotency key stays, which is asked for again.
DELETE FROM jobs WHERE id IN (
  SELECT earlier.id FROM jobs AS later JOIN jobs AS earlier ON earlier.source_path = later.source_path
  WHERE later.id = %s AND later.kind = 'file' AND earlier.status = 'failed' AND earlier.id < later.id
    AND earlier.text IS NULL AND earlier.staged IS NULL AND earlier.idempotency_key IS NULL
)

-- name: select_later
-- The last job that came after one for its path, and is done or runs.
SELECT max(later.id) FROM jobs JOIN jobs AS later ON later.source_path = jobs.source_path
WHERE jobs.id = %s AND later.id > jobs.id AND later.status IN ('done', 'running')

-- name: retry
-- A failed job is queued again, if its content is there.
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE id = %s AND status = 'failed' AND (text IS NOT NULL OR staged IS NOT NULL)
RETURNING id, pg_notify('kb_jobs', '')

-- name: retry_parts
-- Likewise those of what came inside a document, but where others came for their paths since.
WITH newest AS MATERIALIZED (
  SELECT source_path, max(id) AS id FROM jobs
  WHERE source_path IS NOT NULL AND status IN ('done', 'running') GROUP BY source_path
)
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE part_of = %s AND status = 'failed' AND staged IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM newest WHERE newest.source_path = jobs.source_path AND newest.id > jobs.id)
RETURNING id, pg_notify('kb_jobs', '')

-- name: expire
-- Jobs are deleted that were done so many days ago; the oldest ones first.
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs
  WHERE status = 'done' AND COALESCE(finished_at, created_at) < LEAST(now_ms(), %s::timestamptz) - make_interval(days => %s)
  ORDER BY COALESCE(finished_at, created_at) LIMIT %s
) RETURNING id

-- name: delete_job
-- A job goes, whatever its state.
DELETE FROM jobs WHERE id = %s RETURNING pg_notify('kb_ends', id::text)

-- name: forget_document
-- The jobs that made a document, and those of the files inside it, say no more what it was, unless they wait and it may
-- come back; what an idempotency key stands for stays.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = ARRAY[]::text[], content_hash = NULL, sent_why = NULL, source = NULL,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id = %(id)s OR (part_of = %(id)s AND (staged IS NULL OR %(for_good)s))

-- name: delete_parts
-- The jobs of the files inside a document that wait or failed go; one that runs finds that the document is not there.
DELETE FROM jobs WHERE part_of = %s AND status IN ('queued', 'failed') RETURNING pg_notify('kb_ends', id::text)

-- name: drop_content
-- A job's staged file is of no use any more.
UPDATE jobs SET staged = NULL WHERE id = %s

-- name: select_left
-- The staged files of jobs that are in a data directory still.
SELECT staged FROM jobs WHERE staged IS NOT NULL AND staged_at = %s

-- name: set_brought
-- A staged file is where every engine has it.
UPDATE jobs SET staged_at = NULL WHERE staged = %s

-- name: select_staged
-- The staged files that jobs wait with.
SELECT staged FROM jobs WHERE staged IS NOT NULL
