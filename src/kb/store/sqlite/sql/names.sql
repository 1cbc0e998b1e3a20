-- The names of documents.

-- name: has_unnamed
-- Whether the names of some documents must be indexed.
SELECT EXISTS (SELECT 1 FROM unnamed)

-- name: forget_gone_unnamed
-- Forget documents that no longer exist.
DELETE FROM unnamed WHERE document_id NOT IN (SELECT id FROM documents)

-- name: insert_name
-- Insert a word of a document's names.
INSERT OR IGNORE INTO names (document_id, token) VALUES (?, ?)

-- name: tokens
-- The words of an array.
SELECT value AS token FROM json_each(?)

-- name: listed
-- Ids as a text, which is faster to read than one row for each.
group_concat(document_id)
