-- Vectors, of a length that the model says; the table in use is put in. In it they are exact, the index has them in half
-- precision. As they are unit vectors, the inner product is the cosine.

-- name: count_precision
-- So many more vectors were made in a precision.
INSERT INTO vector_precisions (precision, vectors) VALUES (%s, %s)
ON CONFLICT (precision) DO UPDATE SET vectors = vector_precisions.vectors + excluded.vectors

-- name: select_precisions
-- How many vectors were made in each precision.
SELECT precision, vectors FROM vector_precisions WHERE vectors > 0 ORDER BY vectors DESC, precision

-- name: recount_precisions
-- All vectors are of one precision.
INSERT INTO vector_precisions (precision, vectors) SELECT %s, chunks FROM statistics

-- name: forget_precisions
-- None were made.
DELETE FROM vector_precisions

-- name: empty
-- Have none.
TRUNCATE {vectors}

-- name: drop_index
-- Have no index.
DROP INDEX IF EXISTS {vectors}_nearest

-- name: create_index
-- What finds the nearest of many: made with twice pgvector's care, it finds as much where half as many are looked at.
CREATE INDEX {vectors}_nearest ON {vectors} USING hnsw ((embedding::halfvec({dimensions})) halfvec_ip_ops)
WITH (ef_construction = 128)

-- name: select_in_use
-- Which table is in use, and what its vectors are of.
SELECT kept_in, dimensions, model, precision, digest, query_prefix, passage_prefix, folder FROM vector_space

-- name: select_space
-- What they are of, in a database of any version.
SELECT dimensions, model, precision, digest, query_prefix, passage_prefix, folder FROM vector_space

-- name: record_space
-- They are of this.
INSERT INTO vector_space (dimensions, model, precision, digest, query_prefix, passage_prefix, folder)
VALUES (
  %(dimensions)s, %(model)s, %(precision)s, %(digest)s, %(query_prefix)s, %(passage_prefix)s, %(folder)s
)
ON CONFLICT (only_row) DO UPDATE SET
  dimensions = excluded.dimensions, model = excluded.model, precision = excluded.precision, digest = excluded.digest,
  query_prefix = excluded.query_prefix, passage_prefix = excluded.passage_prefix, folder = excluded.folder

-- name: select_vectors
-- The vectors of chunks, by ascending id, as pgvector sends them.
SELECT chunk_id, vector_send(embedding) FROM {vectors} WHERE chunk_id = ANY(%s) ORDER BY chunk_id

-- name: count_admitted
-- How many chunks a filter admits, counted up to a limit; the condition is put in.
SELECT count(*) FROM (
  SELECT 1 FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition}) LIMIT %s
) AS counted

-- name: count_all
-- How many chunks there are.
SELECT chunks FROM statistics

-- name: nearest_exactly
-- The chunks nearest to a vector, after looking at each.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance FROM {vectors}
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: nearest_admitted
-- Likewise of the documents that a filter admits; the among is put in. Their chunks lead to their vectors, which are found
-- by the chunk alone.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance
  FROM (SELECT id, document_id FROM chunks {among}) AS admitted
  JOIN {vectors} AS vectors ON chunk_id = admitted.id AND vectors.document_id = admitted.document_id
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: nearest_by_index
-- The same by the index, which may miss some, and rounds: those nearest of what it finds; the among is put in.
WITH near AS MATERIALIZED (
  SELECT chunk_id, embedding <#> %s::vector AS distance FROM {vectors} {among}
  ORDER BY embedding::halfvec({dimensions}) <#> %s::halfvec({dimensions}) LIMIT %s
)
SELECT chunk_id FROM near ORDER BY distance, chunk_id LIMIT %s

-- name: tune_index
-- How many the index looks at in this transaction, and that it goes on until enough are admitted. They need not be in order:
-- what it finds is sorted by the exact vectors.
SELECT
  set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
  set_config('hnsw.max_scan_tuples', %s, true)
