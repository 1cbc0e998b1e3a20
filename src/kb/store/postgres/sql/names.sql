-- The names of documents.

-- name: insert_names
-- The words of documents' names.
INSERT INTO names (document_id, token) SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:tokens AS text[]))

-- name: tokens
-- The words of an array.
SELECT unnest(CAST(? AS text[])) AS token

-- name: then_join
-- The planner says where it begins.
JOIN

-- name: bytewise
-- Texts are alike to the byte.
"C"
