-- The names of documents.

-- name: has_unnamed
-- Whether there are documents whose names are to be written.
SELECT EXISTS (SELECT 1 FROM unnamed)

-- name: forget_gone_unnamed
-- Documents that are gone have no names.
DELETE FROM unnamed WHERE document_id NOT IN (SELECT id FROM documents)

-- name: insert_name
-- A word of a document's names.
INSERT OR IGNORE INTO names (document_id, token) VALUES (?, ?)

-- name: tokens
-- The words of an array.
SELECT value AS token FROM json_each(?)

-- name: then_join
-- SQLite begins on the left.
CROSS JOIN

-- name: bytewise
-- Texts are alike to the byte.
BINARY
