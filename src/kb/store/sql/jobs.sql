-- The queue. The first parts are for one engine, which needs no locks and no notifications.

-- name: new_id
-- The id of a new job.
:id

-- name: tell_job
-- Notify the workers of a new job.

-- name: tell_end
-- Notify the waiting requests that a job has ended.

-- name: unless_locked
-- Skip jobs that another engine has locked.

-- name: is_here
-- The job's file is available to this engine.
TRUE

-- name: is_mine
-- This engine runs the job.
TRUE

-- name: is_held
-- This engine may end the job.
TRUE

-- name: gone
-- No other engine runs the job.
TRUE

-- name: no_tags
-- An empty list of tags.
'[]'

-- name: select_jobs
-- Select the jobs that meet the condition, newest first. The condition joins the where_ parts below.
SELECT
  id, status, kind, title, filename, source_path, tags, progress, document_id, error, created_at, started_at,
  finished_at, attempts, text, staged, request_hash, content_hash, part_of, depth, sent_by, sent_with, sent_why,
  operation_key, limits, replaces, existed, omitted, $optional_fields
FROM jobs WHERE {condition} ORDER BY id DESC LIMIT :limit

-- name: where_id
-- A job by id.
id = :id

-- name: where_ids
-- Jobs by their ids.
id $in_ids

-- name: where_key
-- The job of an idempotency key.
idempotency_key = :key

-- name: where_status
-- Jobs in a state.
status = :status

-- name: where_before
-- Jobs before an id.
id < :before

-- name: where_sent
-- Jobs of a caller, within the same limits.
sent_by IS NOT DISTINCT FROM CAST(:sent_by AS text) AND limits IS NOT DISTINCT FROM CAST(:limits AS text)

-- name: find_by_key
-- Find the job of an idempotency key.
SELECT id FROM jobs WHERE idempotency_key = :key

-- name: insert_job
-- Insert a queued job, unless its idempotency key is in use.
INSERT INTO jobs (
  id, status, kind, title, source_path, tags, text, staged, filename, idempotency_key, request_hash, content_hash,
  part_of, depth, sent_by, sent_with, sent_why, limits, $optional_fields, replaces, operation_key, created_at
) VALUES (
  $new_id, 'queued', :kind, :title, :source_path, :tags, :text, :staged, :filename, :idempotency_key, :request_hash,
  :content_hash, :part_of, :depth, :by, :client, :why, :limits, $optional_values, :replaces, :operation_key, $now
) ON CONFLICT (idempotency_key) DO NOTHING RETURNING id $tell_job

-- name: count_pending
-- The number of queued or running jobs; the condition is put in.
SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND {condition}

-- name: count_by_status
-- Count the jobs in each state that meet the condition.
SELECT status, count(*) FROM jobs WHERE {condition} GROUP BY status

-- name: unless_earlier
-- No earlier job has the same path.
NOT EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.status IN ('queued', 'running') AND earlier.id < next.id AND earlier.source_path = next.source_path
)

-- name: select_new_files
-- Select new files, whose length is not known here, without a file that follows another job for its path.
SELECT id, staged FROM jobs AS next
WHERE status = 'queued' AND attempts = 0 AND staged IS NOT NULL AND $is_here AND $unless_earlier
ORDER BY id LIMIT :limit $unless_locked

-- name: claim_these
-- Begin these jobs.
UPDATE jobs SET $begin WHERE id $in_ids RETURNING id

-- name: heartbeat
-- Renew the sign of life of running jobs. It skips jobs that a write is ending, because waiting for that write would
-- keep every engine from claiming.
UPDATE jobs SET heartbeat_at = $now WHERE id IN (
  SELECT id FROM jobs WHERE id $in_ids AND status = 'running' AND $is_mine $unless_locked
)

-- name: set_progress
-- Set a job's progress, if the job still exists.
UPDATE jobs SET progress = :progress WHERE id = :id RETURNING id

-- name: set_started
-- Correct the start of a job that first waited for other jobs of the same claim.
UPDATE jobs SET started_at = $seconds_ago WHERE id = :id

-- name: give_up
-- Fail the running jobs that had too many attempts and that no other engine runs.
UPDATE jobs SET status = 'failed', error = :error, finished_at = $now
WHERE status = 'running' AND attempts >= :attempts AND $gone
RETURNING id $tell_end

-- name: try_vectors_again
-- Queue again the failed jobs whose documents are stored already and lack only vectors, for one attempt.
UPDATE jobs SET status = 'queued', attempts = :attempts, error = NULL, finished_at = NULL
WHERE status = 'failed' AND document_id IS NOT NULL AND finished_at <= $seconds_ago
RETURNING id $tell_job

-- name: release_all
-- Queue again every running job that no other engine runs.
UPDATE jobs SET status = 'queued' WHERE status = 'running' AND $gone

-- name: release
-- Queue running jobs again. The given number of attempts does not count.
UPDATE jobs SET status = 'queued', attempts = attempts - :uncounted WHERE id $in_ids AND status = 'running' AND $is_mine

-- name: finish
-- End a job as done. Its text is now in the document. Waiting requests are notified, as of every end.
UPDATE jobs SET
  status = 'done', document_id = :document_id, existed = :existed, omitted = :omitted, progress = 1, finished_at = $now,
  text = NULL, staged = NULL
WHERE id = :id AND $is_held RETURNING id $tell_end

-- name: set_document
-- The document of a queued job is stored; its vectors are missing.
UPDATE jobs SET document_id = :document_id, existed = :existed, omitted = :omitted WHERE id = :id

-- name: select_awaiting
-- Select a queued job that will make the vectors of a document. A running one may have read its passages already, and no
-- other engine can begin this one until the passages are written.
SELECT id FROM jobs WHERE document_id = :id AND status = 'queued' LIMIT 1 $unless_locked

-- name: is_path_awaited
-- Whether a job will write to a path; one with a document writes only vectors.
SELECT EXISTS (
  SELECT 1 FROM jobs
  WHERE status IN ('queued', 'running') AND source_path = :source_path AND id < :before AND document_id IS NULL
)

-- name: fail
-- End a job as failed. Its staged file may be useless from now on.
UPDATE jobs SET
  status = 'failed', error = :error, finished_at = $now, staged = CASE WHEN :drop THEN NULL ELSE staged END
WHERE id = :id AND $is_held RETURNING id $tell_end

-- name: forget_failed
-- Delete the failed jobs before this one for the same path, because the file is readable now. Jobs that kept their
-- content stay, and so do jobs with an idempotency key, because a repeated request needs them.
DELETE FROM jobs WHERE id IN (
  SELECT earlier.id FROM jobs AS later JOIN jobs AS earlier $by_failed_path ON earlier.source_path = later.source_path
  WHERE later.id = :id AND later.kind = 'file' AND earlier.status = 'failed' AND earlier.id < later.id
    AND earlier.text IS NULL AND earlier.staged IS NULL AND earlier.idempotency_key IS NULL
)

-- name: select_later
-- Select the last job after this one for the same path that is done or running, or whose document is stored.
SELECT max(later.id) FROM jobs JOIN jobs AS later ON later.source_path = jobs.source_path
WHERE jobs.id = :id AND later.id > jobs.id AND (later.status IN ('done', 'running') OR later.document_id IS NOT NULL)

-- name: retry
-- Queue a failed job again, if its content is still there.
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE id = :id AND status = 'failed' AND (text IS NOT NULL OR staged IS NOT NULL)
RETURNING id $tell_job

-- name: retry_parts
-- Queue the failed jobs of a document's parts again, except paths with a newer job.
WITH newest AS MATERIALIZED (
  SELECT source_path, max(id) AS id FROM jobs
  WHERE source_path IS NOT NULL AND (status IN ('done', 'running') OR document_id IS NOT NULL) GROUP BY source_path
)
UPDATE jobs SET status = 'queued', attempts = 0, progress = 0, error = NULL, finished_at = NULL
WHERE part_of = :id AND status = 'failed' AND staged IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM newest WHERE newest.source_path = jobs.source_path AND newest.id > jobs.id)
RETURNING id $tell_job

-- name: expire
-- Delete the jobs that ended the given days ago, oldest first.
DELETE FROM jobs WHERE id IN (
  SELECT id FROM jobs $by_done
  WHERE status = 'done' AND COALESCE(finished_at, created_at) < $expiry
  ORDER BY COALESCE(finished_at, created_at) LIMIT :limit
) RETURNING id

-- name: delete_job
-- Delete a job in any state.
DELETE FROM jobs WHERE id = :id RETURNING id $tell_end

-- name: forget_document
-- Remove the names and hashes of a document from its jobs and from the jobs of its parts, except jobs that wait while
-- the document can still be restored. The hash of a request with an idempotency key stays.
UPDATE jobs SET
  title = NULL, filename = NULL, source_path = NULL, tags = $no_tags, content_hash = NULL, sent_why = NULL,
  $null_optional_fields, text = CASE WHEN document_id = :id AND :for_good THEN NULL ELSE text END,
  request_hash = CASE WHEN idempotency_key IS NOT NULL THEN request_hash END
WHERE document_id = :id OR (part_of = :id AND (staged IS NULL OR :for_good))

-- name: delete_parts
-- Delete the waiting and failed jobs of a document's parts. A running one will find that the document is gone.
DELETE FROM jobs WHERE part_of = :id AND status IN ('queued', 'failed') RETURNING id $tell_end

-- name: select_staged
-- Select the staged files of jobs.
SELECT staged FROM jobs WHERE staged IS NOT NULL
