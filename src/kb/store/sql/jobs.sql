-- The queue. The first ones are as one engine has it, which locks nothing and tells nobody.

-- name: new_id
-- The id of a new job.
:id

-- name: tell_job
-- A word to those who wait for a job.

-- name: tell_end
-- A word to those who wait for the end of one.

-- name: unless_locked
-- What another engine has locked is left out.

-- name: is_here
-- That a file is where it can be had.
TRUE

-- name: is_mine
-- That this engine runs a job.
TRUE

-- name: is_held
-- That a job may be ended here.
TRUE

-- name: gone
-- That no other engine runs a job.
TRUE

-- name: no_tags
-- A list of none.
'[]'

-- name: select_jobs
-- Jobs, newest first; the condition is put in, of what follows.
SELECT
  id, status, kind, title, filename, source_path, tags, progress, document_id, error, created_at, started_at,
  finished_at, attempts, text, staged, request_hash, content_hash, part_of, depth, sent_by, sent_with, sent_why,
  operation_key, limits, replaces, existed, omitted, $optional_fields
FROM jobs WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_id
-- It is one.
id = :id

-- name: where_ids
-- It is one of several.
id $in_ids

-- name: where_key
-- It was accepted under an idempotency key.
idempotency_key = :key

-- name: where_status
-- It is in one state.
status = :status

-- name: where_before
-- It came before another.
id < :before

-- name: where_sent
-- One caller sent it, within a limit.
sent_by IS NOT DISTINCT FROM CAST(:sent_by AS text) AND limits IS NOT DISTINCT FROM CAST(:limits AS text)

-- name: find_by_key
-- The job that was accepted under an idempotency key.
SELECT id FROM jobs WHERE idempotency_key = :key

-- name: insert_job
-- A queued job; nothing if there is one under its key.
INSERT INTO jobs (
  id, status, kind, title, source_path, tags, text, staged, filename, idempotency_key, request_hash, content_hash,
  part_of, depth, sent_by, sent_with, sent_why, limits, $optional_fields, replaces, operation_key, created_at
) VALUES (
  $new_id, 'queued', :kind, :title, :source_path, :tags, :text, :staged, :filename, :idempotency_key, :request_hash,
  :content_hash, :part_of, :depth, :by, :client, :why, :limits, $optional_values, :replaces, :operation_key, $now
) ON CONFLICT (idempotency_key) DO NOTHING RETURNING id $tell_job

-- name: count_pending
-- How many jobs are queued or running; the condition is put in.
SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND {condition}

-- name: count_by_status
-- How many jobs there are in each state; the condition is put in.
SELECT status, count(*) FROM jobs WHERE {condition} GROUP BY status

-- name: unless_earlier
-- That no other job came before one for its path.
NOT EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
)

-- name: select_new_files
-- New files, whose length is not known here; none that comes after another job for its path.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NOT NULL AND $is_here AND $unless_earlier
ORDER BY id LIMIT :limit $unless_locked

-- name: claim_these
-- These jobs begin.
UPDATE jobs SET $begin WHERE id $in_ids RETURNING id

-- name: heartbeat
-- Jobs are still being worked on. Those that a write ends at the moment are passed over: who waited for it would keep
-- every engine from claiming.
UPDATE jobs SET heartbeat_at = $now WHERE id IN (
  SELECT id FROM jobs WHERE id $in_ids AND status = 'running' AND $is_mine $unless_locked
)

-- name: set_progress
-- How far a job is, if it is still there.
UPDATE jobs SET progress = :progress WHERE id = :id RETURNING id

-- name: set_started
-- A job was begun so many seconds ago; before, it waited for others that were claimed with it.
UPDATE jobs SET started_at = $seconds_ago WHERE id = :id

-- name: give_up
-- Running jobs fail that were begun so often and that no other engine runs.
UPDATE jobs SET status = 'failed', error = :error, finished_at = $now
WHERE status = 'running' AND attempts >= :attempts AND $gone
RETURNING id $tell_end

-- name: release_all
-- Every running job is queued again that no other engine runs.
UPDATE jobs SET status = 'queued' WHERE status = 'running' AND $gone

-- name: release
-- Running jobs are queued again; so many attempts do not count.
UPDATE jobs SET status = 'queued', attempts = attempts - :uncounted WHERE id $in_ids AND status = 'running' AND $is_mine

-- name: finish
-- A job is done; its text is in the document now. Those who wait for its end hear of it, as of any other end.
UPDATE jobs SET
  status = 'done', document_id = :document_id, existed = :existed, omitted = :omitted, progress = 1, finished_at = $now,
  text = NULL, staged = NULL
WHERE id = :id AND $is_held RETURNING id $tell_end

-- name: set_document
-- The document of a queued job is stored; its vectors are missing.
UPDATE jobs SET document_id = :document_id, existed = :existed, omitted = :omitted WHERE id = :id

-- name: is_path_awaited
-- Whether a job will write to a path; one with a document writes only vectors.
SELECT EXISTS (
  SELECT 1 FROM jobs
  WHERE status IN ('queued', 'running') AND source_path = :source_path AND id < :before AND document_id IS NULL
)

-- name: fail
-- A job failed; its staged file may be of no use any more.
UPDATE jobs SET
  status = 'failed', error = :error, finished_at = $now, staged = CASE WHEN :drop THEN NULL ELSE staged END
WHERE id = :id AND $is_held RETURNING id $tell_end

-- name: forget_failed
-- The jobs that came before one for its path, and failed for what they held, go: the file is whole now.
-- One with an idempotency key stays, which is asked for again.
DELETE FROM jobs WHERE id IN (
  SELECT earlier.id FROM jobs AS later JOIN jobs AS earlier $by_failed_path ON earlier.source_path = later.source_path
  WHERE later.id = :id AND later.kind = 'file' AND earlier.status = 'failed' AND earlier.id < later.id
    AND earlier.text IS NULL AND earlier.staged IS NULL AND earlier.idempotency_key IS NULL
)

-- name: select_later
-- The last job that came after one for its path, and is done or runs.
SELECT max(later.id) FROM jobs JOIN jobs AS later ON later.source_path = jobs.source_path
WHERE jobs.id = :id AND later.id > jobs.id AND later.status IN ('done', 'running')

-- name: retry
-- A failed job is queued again, if its content is there.
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE id = :id AND status = 'failed' AND (text IS NOT NULL OR staged IS NOT NULL)
RETURNING id $tell_job

-- name: retry_parts
-- Likewise those of what came inside a document, but where others came for their paths since.
WITH newest AS MATERIALIZED (
  SELECT source_path, max(id) AS id FROM jobs
  WHERE source_path IS NOT NULL AND status IN ('done', 'running') GROUP BY source_path
)
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE part_of = :id AND status = 'failed' AND staged IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM newest WHERE newest.source_path = jobs.source_path AND newest.id > jobs.id)
RETURNING id $tell_job

-- name: expire
-- Jobs are deleted that were done so many days ago; the oldest ones first.
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs $by_done
  WHERE status = 'done' AND COALESCE(finished_at, created_at) < $expiry
  ORDER BY COALESCE(finished_at, created_at) LIMIT :limit
) RETURNING id

-- name: delete_job
-- A job goes, whatever its state.
DELETE FROM jobs WHERE id = :id RETURNING id $tell_end

-- name: forget_document
-- The jobs that made a document, and those of the files inside it, say no more what it was, unless they wait and it may
-- come back; what an idempotency key stands for stays.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = $no_tags, content_hash = NULL, sent_why = NULL,
  $null_optional_fields, text = CASE WHEN document_id = :id AND :for_good THEN NULL ELSE text END,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id = :id OR (part_of = :id AND (staged IS NULL OR :for_good))

-- name: delete_parts
-- The jobs of the files inside a document that wait or failed go; one that runs finds that the document is not there.
DELETE FROM jobs WHERE part_of = :id AND status IN ('queued', 'failed') RETURNING id $tell_end

-- name: select_staged
-- The staged files that jobs wait with.
SELECT staged FROM jobs WHERE staged IS NOT NULL
