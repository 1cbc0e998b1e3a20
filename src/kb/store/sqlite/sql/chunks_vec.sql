-- The vectors in use; the names of the table's columns are put in, which version 2 may have chosen.

-- name: select_all
-- Every vector, by ascending id.
SELECT {key}, {embedding} FROM chunks_vec ORDER BY {key}

-- name: select_ids
-- The id of every vector.
SELECT {key} FROM chunks_vec

-- name: scan
-- Every vector, in no order: SQLite would sort all of them in memory.
SELECT {key}, {embedding} FROM chunks_vec

-- name: select_with_copies
-- Every vector with its copy, or NULL.
SELECT vectors.{key}, vectors.{embedding}, copies.vector FROM chunks_vec AS vectors
LEFT JOIN vector_copies AS copies ON copies.chunk_id = vectors.{key}

-- name: look_up
-- The vectors of an array of ids, in its order.
SELECT {key}, {embedding} FROM carray(?) AS wanted CROSS JOIN chunks_vec ON {key} = value

-- name: nearest
-- The ids of so many vectors nearest to one.
SELECT {key} FROM chunks_vec WHERE {embedding} MATCH ? AND k = ?

-- name: nearest_among
-- The same of those in an array of ids.
SELECT {key} FROM chunks_vec WHERE {embedding} MATCH ? AND k = ? AND {key} IN (SELECT value FROM carray(?))

-- name: insert
-- A vector, by the id of its chunk.
INSERT INTO chunks_vec ({key}, {embedding}) VALUES (?, ?)

-- name: delete
-- No vector of an id any more.
DELETE FROM chunks_vec WHERE {key} = ?
