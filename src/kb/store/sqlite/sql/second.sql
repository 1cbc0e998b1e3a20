-- The vectors beside those in use; see reembed_vectors.py.

-- name: record_second
-- They are of this.
INSERT OR REPLACE INTO second_space (
  only, state, dimensions, model, precision, digest, query_prefix, passage_prefix, folder
)
VALUES (
  1, :state, :dimensions, :model, :precision, :digest, nullif(:query_prefix, ''), nullif(:passage_prefix, ''), :folder
)

-- name: count_vectors
-- How many there are.
SELECT count(*) FROM second_vectors

-- name: count_wanted
-- How many there will be.
SELECT count(*) FROM chunks

-- name: is_incomplete
-- Whether one is missing.
SELECT EXISTS (SELECT 1 FROM chunks WHERE id NOT IN (SELECT chunk_id FROM second_vectors))

-- name: select_missing
-- Chunks above an id that have none.
SELECT id, header, text FROM source_texts
WHERE id > :after AND NOT EXISTS (SELECT 1 FROM second_vectors WHERE chunk_id = id) ORDER BY id LIMIT :limit

-- name: insert_vector
-- The vector of a chunk, if that is there still.
INSERT OR REPLACE INTO second_vectors (chunk_id, vector) SELECT id, ? FROM chunks WHERE id = ?

-- name: select_ids
-- The chunks that have one, with commas between them.
SELECT group_concat(chunk_id) FROM second_vectors

-- name: select_uncoded
-- The chunks that have one and no code, with commas between them.
SELECT group_concat(chunk_id) FROM (
  SELECT chunk_id FROM second_vectors WHERE chunk_id NOT IN (SELECT chunk_id FROM second_codes) LIMIT ?
)

-- name: select_vectors
-- Those of an array of ids, in its order, as `select_copies` gives them.
SELECT group_concat(chunk_id), CAST(group_concat(CAST(vector AS TEXT), '') AS BLOB) FROM (
  SELECT chunk_id, vector FROM carray(?) CROSS JOIN second_vectors ON chunk_id = value WHERE length(vector) = ?
)

-- name: select_mean
-- What their codes are centred on.
SELECT mean FROM second_mean

-- name: insert_mean
-- Centre their codes on this.
INSERT INTO second_mean (only, mean) VALUES (1, ?)

-- name: insert_code
-- The code of one.
INSERT OR REPLACE INTO second_codes (chunk_id, code) VALUES (?, ?)

-- name: fill_vectors
-- The vectors in use are those that the copies have.
INSERT INTO chunks_vec (chunk_id, embedding) SELECT chunk_id, substr(vector, 1, ?) FROM vector_copies
