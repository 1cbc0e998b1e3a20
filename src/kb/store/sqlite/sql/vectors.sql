-- Codes of the vectors, computed from chunks_vec. See vector_codes.py.

-- name: count_precision
-- Add to the number of vectors made in a precision.
INSERT INTO vector_precisions (precision, vectors) VALUES (?, ?)
ON CONFLICT (precision) DO UPDATE SET vectors = vector_precisions.vectors + excluded.vectors

-- name: select_precisions
-- Select the number of vectors made in each precision.
SELECT precision, vectors FROM vector_precisions WHERE vectors > 0 ORDER BY vectors DESC, precision

-- name: select_chunk_ids
-- Select the id of every chunk, separated by commas.
SELECT group_concat(id) FROM chunks

-- name: select_existing
-- Select the ids of an array that are ids of chunks, separated by commas.
SELECT group_concat(id) FROM carray(?) JOIN chunks ON id = value

-- name: select_mean
-- Select the mean that the codes are centred on.
SELECT mean FROM vector_mean

-- name: insert_mean
-- Set the mean that the codes are centred on.
INSERT INTO vector_mean (only, mean) VALUES (1, ?)

-- name: delete_mean
-- Delete the mean. Without it, kb uses no codes.
DELETE FROM vector_mean

-- name: delete_some_codes
-- Delete some codes.
DELETE FROM vector_codes WHERE chunk_id IN (SELECT chunk_id FROM vector_codes LIMIT ?)

-- name: has_codes
-- Whether any code exists.
SELECT EXISTS (SELECT 1 FROM vector_codes)

-- name: delete_codes
-- Delete all codes.
DELETE FROM vector_codes

-- name: select_codes
-- Select the codes above an id, by ascending id, as one text and one blob, which is faster than rows. It skips codes of
-- the wrong length.
SELECT group_concat(chunk_id), CAST(group_concat(CAST(code AS TEXT), '') AS BLOB) FROM (
  SELECT chunk_id, code FROM vector_codes WHERE chunk_id > ? AND length(code) = ? ORDER BY chunk_id LIMIT ?
)

-- name: insert_code
-- Insert the code of a chunk.
INSERT OR REPLACE INTO vector_codes (chunk_id, code) VALUES (?, ?)
