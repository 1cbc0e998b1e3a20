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

-- name: select_named
-- Select documents with some words in their names, rarest words first. Very frequent words do not count.
WITH wanted AS ($tokens),
  counted AS MATERIALIZED (
    SELECT token, (
      SELECT count(*) FROM (SELECT 1 FROM names WHERE names.token = wanted.token {admitted_only} LIMIT ?) AS counted_up_to
    ) AS there
    FROM wanted
  ),
  found AS (
    SELECT document_id, sum(1000000000000 / there) AS weight, count(*) AS has
    FROM counted $then_join names ON names.token = counted.token COLLATE $bytewise
    WHERE there BETWEEN 1 AND ? {admitted_only} GROUP BY document_id ORDER BY weight DESC, document_id LIMIT ?
  )
SELECT $named, (SELECT count(*) FROM counted WHERE there <= ?) - has
FROM found JOIN documents ON documents.id = document_id ORDER BY weight DESC, document_id
