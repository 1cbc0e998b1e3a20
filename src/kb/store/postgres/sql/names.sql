-- The names of documents.

-- name: insert_names
-- Insert the words of documents' names.
INSERT INTO names (document_id, token) SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:tokens AS text[]))

-- name: tokens
-- The words of an array.
SELECT unnest(CAST(? AS text[])) AS token

-- name: then_join
-- Let the planner choose the side to begin on.
JOIN

-- name: bytewise
-- Compare texts byte by byte.
"C"
