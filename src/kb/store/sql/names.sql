-- The names of documents.

-- name: named
-- A document with the texts of its names.
documents.id, title, COALESCE(source_path, ''), COALESCE(uploaded_as, ''), part_of IS NOT NULL,
  COALESCE((SELECT header FROM sections WHERE sections.document_id = documents.id ORDER BY sections.id LIMIT 1), '')

-- name: select_unnamed
-- Select documents whose names must be indexed, the last ones first.
SELECT $named
FROM unnamed JOIN documents ON documents.id = unnamed.document_id ORDER BY unnamed.document_id DESC LIMIT :limit

-- name: select_named_before
-- Select documents with ids below one, the last ones first.
SELECT $named FROM documents WHERE documents.id < :before ORDER BY documents.id DESC LIMIT :limit

-- name: forget_unnamed
-- Note that the names of documents are indexed.
DELETE FROM unnamed WHERE document_id $in_ids

-- name: delete_names
-- Delete the indexed names of documents.
DELETE FROM names WHERE document_id $in_ids

-- name: select_name_postings
-- Select the documents with each of some words in their names, and one more of them than the most that count.
WITH wanted AS ($tokens)
SELECT (
  SELECT $listed
  FROM (SELECT document_id FROM names WHERE names.token = wanted.token {admitted_only} LIMIT ?) AS found
) FROM wanted

-- name: select_named
-- Select documents with their names.
SELECT $named FROM documents WHERE documents.id $in_ids
