-- The second set of vectors. See reembed_vectors.py. The name of its table is filled in.

-- name: record_second
-- Record the model of the second set. No engine computes it yet.
INSERT INTO second_space (state, dimensions, model, precision, digest, query_prefix, passage_prefix, folder)
VALUES (:state, :dimensions, :model, :precision, :digest, :query_prefix, :passage_prefix, :folder)
ON CONFLICT (only_row) DO UPDATE SET
  state = excluded.state, dimensions = excluded.dimensions, model = excluded.model, precision = excluded.precision,
  digest = excluded.digest, query_prefix = excluded.query_prefix, passage_prefix = excluded.passage_prefix,
  folder = excluded.folder, run_by = NULL

-- name: take
-- Let this engine compute the second set, unless another engine does and gave a recent sign of life.
UPDATE second_space SET run_by = :engine, heartbeat_at = now_ms()
WHERE {gone} OR heartbeat_at < now_ms() - make_interval(secs => :seconds)
RETURNING true

-- name: wait_briefly
-- Limit the wait for an exclusive lock, so that other statements do not queue up during a backup. The limit is longer
-- than autovacuum, which ends after a second.
SELECT set_config('lock_timeout', '1500ms', true)

-- name: delete_second
-- Delete the record of the second set.
DELETE FROM second_space

-- name: count_vectors
-- Count the vectors of the second set.
SELECT count(*) FROM {vectors}

-- name: count_wanted
-- Count the vectors that the second set will have.
SELECT chunks FROM statistics

-- name: is_incomplete
-- Whether a vector is missing.
SELECT EXISTS (
  SELECT 1 FROM chunks WHERE NOT EXISTS (
    SELECT 1 FROM {vectors} AS made WHERE made.chunk_id = chunks.id AND made.document_id = chunks.document_id
  )
)

-- name: select_missing
-- Select the chunks above an id that have no vector.
SELECT chunks.id, COALESCE(header, ''), text
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id > :after AND NOT EXISTS (
  SELECT 1 FROM {vectors} AS made WHERE made.chunk_id = chunks.id AND made.document_id = chunks.document_id
)
ORDER BY chunks.id LIMIT :limit

-- name: insert_vector
-- Insert the vector of a chunk, if the chunk still exists.
INSERT INTO {vectors} (chunk_id, document_id, embedding) SELECT id, document_id, CAST(? AS vector) FROM chunks WHERE id = ?
ON CONFLICT (chunk_id, document_id) DO UPDATE SET embedding = excluded.embedding

-- name: delete_empty
-- Delete the vectors in use that are not made yet, so that they are made again before a switch back.
DELETE FROM {vectors} WHERE vector_norm(embedding) = 0
  AND document_id IN (SELECT document_id FROM jobs WHERE status IN ('queued', 'running'))

-- name: switch_space
-- Make the second set the set in use.
UPDATE vector_space SET
  dimensions = second_space.dimensions, model = second_space.model, precision = second_space.precision,
  digest = second_space.digest, query_prefix = second_space.query_prefix, passage_prefix = second_space.passage_prefix,
  folder = second_space.folder, kept_in = ?
FROM second_space
