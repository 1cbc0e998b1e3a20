-- The vectors in use. The names of the table's columns are filled in, because version 2 may have chosen others.

-- name: select_all
-- Select every vector, by ascending id.
SELECT {key}, {embedding} FROM chunks_vec ORDER BY {key}

-- name: select_ids
-- Select the id of every vector.
SELECT {key} FROM chunks_vec

-- name: scan
-- Select every vector in any order. To sort them, SQLite would hold all of them in memory.
SELECT {key}, {embedding} FROM chunks_vec

-- name: find
-- Select the block and the place in it of the vector of each id in an array, in its order; NULL without a vector.
SELECT chunk_id, chunk_offset FROM carray(?) LEFT JOIN chunks_vec_rowids ON rowid = value

-- name: nearest
-- Select the ids of the vectors nearest to a vector.
SELECT {key} FROM chunks_vec WHERE {embedding} MATCH ? AND k = ?

-- name: nearest_among
-- Select the ids of the vectors nearest to a vector, among an array of ids.
SELECT {key} FROM chunks_vec WHERE {embedding} MATCH ? AND k = ? AND {key} IN (SELECT value FROM carray(?))

-- name: select_empty
-- Select the chunks of a document whose vector is all zeros, because it is not made yet. Both tables may have a column `id`.
SELECT chunks.id FROM chunks CROSS JOIN chunks_vec ON chunks_vec.{key} = chunks.id
WHERE chunks.document_id = ? AND chunks_vec.{embedding} = zeroblob(?)

-- name: update
-- Set the vector of a chunk.
UPDATE chunks_vec SET {embedding} = ? WHERE {key} = ?

-- name: insert
-- Insert the vector of a chunk.
INSERT INTO chunks_vec ({key}, {embedding}) VALUES (?, ?)

-- name: delete
-- Delete the vector of a chunk.
DELETE FROM chunks_vec WHERE {key} = ?
