-- The names of documents.

-- name: select_unnamed
-- Documents whose names are to be written, the last ones first.
SELECT documents.id, title, COALESCE(source_path, ''), COALESCE(uploaded_as, ''), part_of IS NOT NULL,
  COALESCE((SELECT header FROM sections WHERE sections.document_id = documents.id ORDER BY sections.id LIMIT 1), '')
FROM unnamed JOIN documents ON documents.id = unnamed.document_id ORDER BY unnamed.document_id DESC LIMIT ?

-- name: has_unnamed
-- Whether there are any.
SELECT EXISTS (SELECT 1 FROM unnamed)

-- name: forget_unnamed
-- The names of a document are written.
DELETE FROM unnamed WHERE document_id = ?

-- name: forget_gone_unnamed
-- Documents that are gone have no names.
DELETE FROM unnamed WHERE document_id NOT IN (SELECT id FROM documents)

-- name: delete_names
-- A document has other names.
DELETE FROM names WHERE document_id = ?

-- name: insert_name
-- A word of a document's names.
INSERT OR IGNORE INTO names (token, document_id) VALUES (?, ?)

-- name: select_named
-- Documents with some of the words of a JSON array in their names, those with the rarest first; words that very many have
-- tell nothing.
WITH wanted AS (SELECT value AS token FROM json_each(?)),
  counted AS MATERIALIZED (
    SELECT token, (
      SELECT count(*) FROM (SELECT 1 FROM names WHERE names.token = wanted.token {admitted_only} LIMIT ?)
    ) AS there
    FROM wanted
  ),
  found AS (
    SELECT document_id, sum(1000000000000 / there) AS weight, count(*) AS has FROM counted CROSS JOIN names ON names.token = counted.token
    WHERE there BETWEEN 1 AND ? {admitted_only} GROUP BY document_id ORDER BY weight DESC, document_id LIMIT ?
  )
SELECT documents.id, title, COALESCE(source_path, ''), COALESCE(uploaded_as, ''), part_of IS NOT NULL,
  COALESCE((SELECT header FROM sections WHERE sections.document_id = documents.id ORDER BY sections.id LIMIT 1), ''),
  (SELECT count(*) FROM counted WHERE there <= ?) - has
FROM found JOIN documents ON documents.id = document_id ORDER BY weight DESC, document_id
