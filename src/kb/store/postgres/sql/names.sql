-- The names of documents.

-- name: insert_names
-- Insert the words of documents' names.
INSERT INTO names (document_id, token) SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:tokens AS text[]))

-- name: tokens
-- The words of an array.
SELECT unnest(CAST(? AS text[])) AS token

-- name: listed
-- Ids as a text.
string_agg(CAST(document_id AS text), ',')
