-- The second set of vectors. See reembed_vectors.py.

-- name: record_second
-- Record the model of the second set.
INSERT OR REPLACE INTO second_space (
  only, state, dimensions, model, precision, digest, query_prefix, passage_prefix, folder
)
VALUES (
  1, :state, :dimensions, :model, :precision, :digest, nullif(:query_prefix, ''), nullif(:passage_prefix, ''), :folder
)

-- name: count_vectors
-- Count the vectors of the second set.
SELECT count(*) FROM second_vectors

-- name: count_wanted
-- Count the vectors that the second set will have.
SELECT count(*) FROM chunks

-- name: is_incomplete
-- Whether a vector is missing.
SELECT EXISTS (SELECT 1 FROM chunks WHERE id NOT IN (SELECT chunk_id FROM second_vectors))

-- name: select_missing
-- Select the chunks above an id that have no vector.
SELECT id, header, text FROM source_texts
WHERE id > :after AND NOT EXISTS (SELECT 1 FROM second_vectors WHERE chunk_id = id) ORDER BY id LIMIT :limit

-- name: insert_vector
-- Insert the vector of a chunk, if the chunk still exists.
INSERT OR REPLACE INTO second_vectors (chunk_id, vector) SELECT id, ? FROM chunks WHERE id = ?

-- name: select_ids
-- Select the chunks with a vector, separated by commas.
SELECT group_concat(chunk_id) FROM second_vectors

-- name: select_uncoded
-- Select the chunks with a vector and without a code, separated by commas.
SELECT group_concat(chunk_id) FROM (
  SELECT chunk_id FROM second_vectors WHERE chunk_id NOT IN (SELECT chunk_id FROM second_codes) LIMIT ?
)

-- name: select_vectors
-- Select the vectors of an array of ids, in its order, as one text and one blob, which is faster than rows.
SELECT group_concat(chunk_id), CAST(group_concat(CAST(vector AS TEXT), '') AS BLOB) FROM (
  SELECT chunk_id, vector FROM carray(?) CROSS JOIN second_vectors ON chunk_id = value WHERE length(vector) = ?
)

-- name: select_mean
-- Select the mean that the codes are centred on.
SELECT mean FROM second_mean

-- name: insert_mean
-- Set the mean that the codes are centred on.
INSERT INTO second_mean (only, mean) VALUES (1, ?)

-- name: delete_code
-- Delete the code of a chunk.
DELETE FROM second_codes WHERE chunk_id = ?

-- name: insert_code
-- Insert the code of a chunk.
INSERT OR REPLACE INTO second_codes (chunk_id, code) VALUES (?, ?)

-- name: select_declaration
-- Select the declaration of the table of the second vectors.
SELECT sql FROM sqlite_schema WHERE name = 'second_vectors'
