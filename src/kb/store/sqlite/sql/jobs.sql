-- The queue.

-- name: select_jobs
-- Jobs; {condition} is put in.
SELECT
  id, status, kind, title, filename, source_path, tags, progress, document_id, error, created_at, started_at,
  finished_at, attempts, text, staged, request_hash, content_hash, part_of, depth, sent_by, sent_with, sent_why, limits,
  source, replaces, existed, omitted, operation_key
FROM jobs WHERE {condition}

-- name: find_by_key
-- The job that was accepted under an idempotency key.
SELECT id FROM jobs WHERE idempotency_key = ?

-- name: take_job_ids
-- So many ids above every one that was ever given; the last of them.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM jobs)) + ? WHERE name = 'jobs' RETURNING id

-- name: insert_job
-- A queued job; nothing if there is one under its key.
INSERT INTO jobs (
  id, status, kind, title, source_path, tags, text, staged, filename, idempotency_key, request_hash, content_hash,
  part_of, depth, sent_by, sent_with, sent_why, limits, source, replaces, operation_key, created_at
) VALUES (
  :id, 'queued', :kind, :title, :source_path, :tags, :text, :staged, :filename, :idempotency_key, :request_hash,
  :content_hash, :part_of, :depth, :by, :client, :why, :limits, :source, :replaces,
  :operation_key, kb_now()
) ON CONFLICT (idempotency_key) DO NOTHING RETURNING id

-- name: count_pending
-- How many jobs are queued or running; {condition} is put in.
SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND {condition}

-- name: count_by_status
-- How many jobs there are in each state; {condition} is put in.
SELECT status, count(*) FROM jobs WHERE {condition} GROUP BY status

-- name: queue_age
-- For how many seconds the oldest queued job has waited; NULL if there is none.
SELECT 86400 * (julianday(kb_now()) - julianday(created_at))
FROM jobs WHERE status = 'queued' ORDER BY id LIMIT 1

-- name: claim
-- Queued jobs begin: those that were begun before, or those that were not. What was begun less often goes first, but not
-- before what came earlier for the same path, and those that were begun before wait for all of that. Files may be left out, and what comes after one for its path then is, too.
UPDATE jobs SET
  status = 'running', attempts = attempts + 1, started_at = kb_now(),
  heartbeat_at = kb_now()
WHERE id IN (
  SELECT id FROM jobs AS next INDEXED BY jobs_queue
  WHERE status = 'queued' AND (attempts > 0) = :begun AND (staged IS NULL OR :files) AND NOT EXISTS (
    SELECT 1 FROM jobs AS earlier INDEXED BY jobs_queued_path
    WHERE status IN ('queued', 'running') AND status = 'queued' AND (earlier.attempts > next.attempts OR :begun OR earlier.staged IS NOT NULL AND NOT :files)
      AND earlier.id < next.id AND earlier.source_path = next.source_path
  )
  ORDER BY attempts, id LIMIT :limit
) RETURNING id

-- name: select_short_notes
-- New short notes, which may overtake files, however many of those wait; none that comes after another job for its path.
-- (SQL's own `length` ends at a NUL.)
SELECT id, staged FROM jobs AS next INDEXED BY jobs_new_notes
WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND octet_length(text) <= ? AND NOT EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
)
ORDER BY id LIMIT ?

-- name: select_new_files
-- New files, whose length is not known here; none that comes after another job for its path.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
)
ORDER BY id LIMIT ?

-- name: claim_these
-- These jobs begin, for ids in a JSON array.
UPDATE jobs SET
  status = 'running', attempts = attempts + 1, started_at = kb_now(),
  heartbeat_at = kb_now()
WHERE id IN (SELECT value FROM json_each(?)) RETURNING id

-- name: heartbeat
-- A job is still being worked on.
UPDATE jobs SET heartbeat_at = kb_now() WHERE id = ?

-- name: set_progress
-- How far a job is, if it is still there.
UPDATE jobs SET progress = ? WHERE id = ? RETURNING id

-- name: set_started
-- A job was begun so long ago, as in '-0.5 seconds'; before, it waited for others that were claimed with it.
UPDATE jobs SET started_at = strftime('%Y-%m-%d %H:%M:%f', kb_now(), ?) WHERE id = ?

-- name: give_up
-- Running jobs fail that were begun so often.
UPDATE jobs SET status = 'failed', error = ?, finished_at = kb_now()
WHERE status = 'running' AND attempts >= ?
RETURNING id

-- name: release_all
-- Every running job is queued again.
UPDATE jobs SET status = 'queued' WHERE status = 'running'

-- name: release_stalled
-- Running jobs are queued again that gave no sign of life since so long ago, as in '-120 seconds'; that is no attempt.
-- A sign from the future is that of a clock that was wrong.
UPDATE jobs SET status = 'queued', attempts = max(attempts - 1, 0)
WHERE status = 'running'
  AND (heartbeat_at <= strftime('%Y-%m-%d %H:%M:%f', kb_now(), ?) OR heartbeat_at > kb_now())
RETURNING id

-- name: release
-- A running job is queued again; so many attempts do not count.
UPDATE jobs SET status = 'queued', attempts = attempts - ? WHERE id = ? AND status = 'running'

-- name: finish
-- A job is done; its text is in the document now.
UPDATE jobs SET
  status = 'done', document_id = ?, existed = ?, omitted = ?, progress = 1, finished_at = kb_now(),
  text = NULL, staged = NULL
WHERE id = ?

-- name: fail
-- A job failed.
UPDATE jobs SET status = 'failed', error = ?, finished_at = kb_now() WHERE id = ?

-- name: forget_failed
-- The jobs that came before one for its path, and failed for what they held, go: the file is whole now.
-- One with an idempotency key stays, which is asked for again.
DELETE FROM jobs WHERE id IN (
  SELECT earlier.id FROM jobs AS later JOIN jobs AS earlier INDEXED BY jobs_failed_path
    ON earlier.source_path = later.source_path
  WHERE later.id = ? AND later.kind = 'file' AND earlier.status = 'failed' AND earlier.id < later.id
    AND earlier.text IS NULL AND earlier.staged IS NULL AND earlier.idempotency_key IS NULL
)

-- name: select_later
-- The last job that came after one for its path, and is done or runs.
SELECT max(later.id) FROM jobs JOIN jobs AS later ON later.source_path = jobs.source_path
WHERE jobs.id = ? AND later.id > jobs.id AND later.status IN ('done', 'running')

-- name: retry
-- A failed job is queued again, if its content is there.
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE id = ? AND status = 'failed' AND (text IS NOT NULL OR staged IS NOT NULL)
RETURNING id

-- name: retry_parts
-- Likewise those of what came inside a document, but where others came for their paths since.
WITH newest AS MATERIALIZED (
  SELECT source_path, max(id) AS id FROM jobs
  WHERE source_path IS NOT NULL AND status IN ('done', 'running') GROUP BY source_path
)
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE part_of = ? AND status = 'failed' AND staged IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM newest WHERE newest.source_path = jobs.source_path AND newest.id > jobs.id)

-- name: expire
-- Jobs are deleted that were done so long ago, as in '-30 days'; the oldest ones first.
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs INDEXED BY jobs_done
  WHERE status = 'done' AND COALESCE(finished_at, created_at) < strftime('%Y-%m-%d %H:%M:%f', kb_expiry(), ?)
  ORDER BY COALESCE(finished_at, created_at) LIMIT ?
) RETURNING id

-- name: delete_job
-- A job goes, whatever its state.
DELETE FROM jobs WHERE id = ?

-- name: forget_document
-- The jobs that made a document, and those of the files inside it, say no more what it was, unless they wait and it may
-- come back; what an idempotency key stands for stays.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = '[]', content_hash = NULL, sent_why = NULL, source = NULL,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id = :id OR (part_of = :id AND (staged IS NULL OR :for_good))

-- name: delete_parts
-- The jobs of the files inside a document that wait or failed go; one that runs finds that the document is not there.
DELETE FROM jobs WHERE part_of = ? AND status IN ('queued', 'failed')

-- name: drop_content
-- A job's staged file is of no use any more.
UPDATE jobs SET staged = NULL WHERE id = ?

-- name: select_staged
-- The staged files that jobs wait with.
SELECT staged FROM jobs WHERE staged IS NOT NULL
