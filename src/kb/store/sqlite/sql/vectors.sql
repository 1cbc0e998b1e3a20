-- Codes and copies of the vectors, made from chunks_vec; see vector_codes.py.

-- name: count_precision
-- So many more vectors were made in a precision.
INSERT INTO vector_precisions (precision, vectors) VALUES (?, ?)
ON CONFLICT (precision) DO UPDATE SET vectors = vector_precisions.vectors + excluded.vectors

-- name: select_precisions
-- How many vectors were made in each precision.
SELECT precision, vectors FROM vector_precisions WHERE vectors > 0 ORDER BY vectors DESC, precision

-- name: select_chunk_ids
-- The id of every chunk, with commas between them.
SELECT group_concat(id) FROM chunks

-- name: select_existing
-- Those of an array of ids that a chunk has, with commas between them.
SELECT group_concat(id) FROM carray(?) JOIN chunks ON id = value

-- name: select_mean
-- What the codes are centred on.
SELECT mean FROM vector_mean

-- name: insert_mean
-- Centre the codes on this.
INSERT INTO vector_mean (only, mean) VALUES (1, ?)

-- name: delete_mean
-- Have no codes.
DELETE FROM vector_mean

-- name: delete_some_codes
-- Have fewer codes.
DELETE FROM vector_codes WHERE chunk_id IN (SELECT chunk_id FROM vector_codes LIMIT ?)

-- name: delete_some_copies
-- Have fewer copies.
DELETE FROM vector_copies WHERE chunk_id IN (SELECT chunk_id FROM vector_copies LIMIT ?)

-- name: has_codes
-- Whether there is any code or copy.
SELECT EXISTS (SELECT 1 FROM vector_codes) OR EXISTS (SELECT 1 FROM vector_copies)

-- name: delete_codes
-- Have no codes.
DELETE FROM vector_codes

-- name: delete_copies
-- Have no copies.
DELETE FROM vector_copies

-- name: select_codes
-- The ids above one and their codes, by ascending id: all in one text and one blob, which is faster than a row for each.
-- A code of the wrong length is left out.
SELECT group_concat(chunk_id), CAST(group_concat(CAST(code AS TEXT), '') AS BLOB) FROM (
  SELECT chunk_id, code FROM vector_codes WHERE chunk_id > ? AND length(code) = ? ORDER BY chunk_id LIMIT ?
)

-- name: insert_code
-- The code of a chunk.
INSERT OR REPLACE INTO vector_codes (chunk_id, code) VALUES (?, ?)

-- name: has_copies
-- Whether there is any copy.
SELECT EXISTS (SELECT 1 FROM vector_copies)

-- name: select_copies
-- Those of an array of ids, in its order, that have a copy, and the copies: in one text and one blob, as above.
SELECT group_concat(chunk_id), CAST(group_concat(CAST(vector AS TEXT), '') AS BLOB) FROM (
  SELECT chunk_id, vector FROM carray(?) CROSS JOIN vector_copies ON chunk_id = value WHERE length(vector) = ?
)

-- name: insert_copy
-- The copy of a chunk's vector.
INSERT OR REPLACE INTO vector_copies (chunk_id, vector) VALUES (?, ?)
