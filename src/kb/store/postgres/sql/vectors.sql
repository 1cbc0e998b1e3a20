-- Vectors, as long as the model's. The name of the table in use is filled in. The table has exact vectors, and the
-- index has them in half precision. Because they are unit vectors, the inner product is the cosine.

-- name: count_precision
-- Add to the number of vectors made in a precision.
INSERT INTO vector_precisions (precision, vectors) VALUES (%s, %s)
ON CONFLICT (precision) DO UPDATE SET vectors = vector_precisions.vectors + excluded.vectors

-- name: select_precisions
-- Select the number of vectors made in each precision.
SELECT precision, vectors FROM vector_precisions WHERE vectors > 0 ORDER BY vectors DESC, precision

-- name: recount_precisions
-- Record that all vectors have one precision.
INSERT INTO vector_precisions (precision, vectors) SELECT %s, chunks FROM statistics

-- name: forget_precisions
-- Forget the number of vectors made in each precision.
DELETE FROM vector_precisions

-- name: empty
-- Delete all vectors.
TRUNCATE {vectors}

-- name: drop_index
-- Delete the index.
DROP INDEX IF EXISTS {vectors}_nearest

-- name: create_index
-- Create the index for nearest vectors. With twice pgvector's default of ef_construction, a search finds as many with
-- half the candidates.
CREATE INDEX {vectors}_nearest ON {vectors} USING hnsw ((embedding::halfvec({dimensions})) halfvec_ip_ops)
WITH (ef_construction = 128)

-- name: select_in_use
-- Select the table in use, and the model of its vectors.
SELECT kept_in, dimensions, model, precision, digest, query_prefix, passage_prefix, folder FROM vector_space

-- name: select_space
-- Select the model of the vectors, in a database of any version.
SELECT dimensions, model, precision, digest, query_prefix, passage_prefix, folder FROM vector_space

-- name: record_space
-- Record the model of the vectors.
INSERT INTO vector_space (dimensions, model, precision, digest, query_prefix, passage_prefix, folder)
VALUES (
  %(dimensions)s, %(model)s, %(precision)s, %(digest)s, %(query_prefix)s, %(passage_prefix)s, %(folder)s
)
ON CONFLICT (only_row) DO UPDATE SET
  dimensions = excluded.dimensions, model = excluded.model, precision = excluded.precision, digest = excluded.digest,
  query_prefix = excluded.query_prefix, passage_prefix = excluded.passage_prefix, folder = excluded.folder

-- name: select_vectors
-- Select the vectors of chunks, by ascending id, in pgvector's binary form.
SELECT chunk_id, vector_send(embedding) FROM {vectors} WHERE chunk_id = ANY(%s) ORDER BY chunk_id

-- name: count_admitted
-- Count the chunks of a filter, up to a limit. The condition is filled in.
SELECT count(*) FROM (
  SELECT 1 FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition}) LIMIT %s
) AS counted

-- name: count_all
-- Count all chunks.
SELECT chunks FROM statistics

-- name: nearest_exactly
-- Select the chunks nearest to a vector, and compare each one.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance FROM {vectors}
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: nearest_admitted
-- Select the chunks of a filter nearest to a vector. The among is filled in. The chunks lead to their vectors, which
-- the database looks up only by chunk.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance
  FROM (SELECT id, document_id FROM chunks {among}) AS admitted
  JOIN {vectors} AS vectors ON chunk_id = admitted.id AND vectors.document_id = admitted.document_id
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: nearest_by_index
-- Select the chunks nearest to a vector by the index, which may miss some, and rounds. Sort the candidates exactly. The
-- among is filled in.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance FROM {vectors} {among}
  ORDER BY embedding::halfvec({dimensions}) <#> %s::halfvec({dimensions}) LIMIT %s
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: tune_index
-- Set the number of candidates in this transaction, and let the scan continue until enough are admitted. Their order
-- does not matter, because the exact vectors sort them.
SELECT
  set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
  set_config('hnsw.max_scan_tuples', %s, true)
