-- The vectors beside those in use; see reembed_vectors.py. Their table is put in.

-- name: record_second
-- They are of this, and nobody makes them yet.
INSERT INTO second_space (state, dimensions, model, precision, digest, query_prefix, passage_prefix, folder)
VALUES (:state, :dimensions, :model, :precision, :digest, :query_prefix, :passage_prefix, :folder)
ON CONFLICT (only_row) DO UPDATE SET
  state = excluded.state, dimensions = excluded.dimensions, model = excluded.model, precision = excluded.precision,
  digest = excluded.digest, query_prefix = excluded.query_prefix, passage_prefix = excluded.passage_prefix,
  folder = excluded.folder, run_by = NULL

-- name: take
-- An engine makes them from now on, or still, unless another one does that is there and was heard of lately.
UPDATE second_space SET run_by = :engine, heartbeat_at = now_ms()
WHERE {gone} OR heartbeat_at < now_ms() - make_interval(secs => :seconds)
RETURNING true

-- name: wait_briefly
-- Who wants a table for itself does not keep everybody waiting until a backup has been read from it, and only so long that
-- autovacuum, which gives way after a second, has ended.
SELECT set_config('lock_timeout', '1500ms', true)

-- name: delete_second
-- Nor is there anything else of them.
DELETE FROM second_space

-- name: count_vectors
-- How many there are.
SELECT count(*) FROM {vectors}

-- name: count_wanted
-- How many there will be.
SELECT chunks FROM statistics

-- name: is_incomplete
-- Whether one is missing.
SELECT EXISTS (
  SELECT 1 FROM chunks WHERE NOT EXISTS (
    SELECT 1 FROM {vectors} AS made WHERE made.chunk_id = chunks.id AND made.document_id = chunks.document_id
  )
)

-- name: select_missing
-- Chunks above an id that have none.
SELECT chunks.id, COALESCE(header, ''), text
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id > :after AND NOT EXISTS (
  SELECT 1 FROM {vectors} AS made WHERE made.chunk_id = chunks.id AND made.document_id = chunks.document_id
)
ORDER BY chunks.id LIMIT :limit

-- name: insert_vector
-- The vector of a chunk, if that is there still.
INSERT INTO {vectors} (chunk_id, document_id, embedding) SELECT id, document_id, CAST(? AS vector) FROM chunks WHERE id = ?
ON CONFLICT (chunk_id, document_id) DO UPDATE SET embedding = excluded.embedding

-- name: switch_space
-- Those that are in use are the others from now on.
UPDATE vector_space SET
  dimensions = second_space.dimensions, model = second_space.model, precision = second_space.precision,
  digest = second_space.digest, query_prefix = second_space.query_prefix, passage_prefix = second_space.passage_prefix,
  folder = second_space.folder, kept_in = ?
FROM second_space
