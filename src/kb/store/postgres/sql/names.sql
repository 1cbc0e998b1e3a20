-- The names of documents.

-- name: select_unnamed
-- Documents whose names are to be written, the last ones first.
SELECT documents.id, title, COALESCE(source_path, ''), COALESCE(uploaded_as, ''), part_of IS NOT NULL,
  COALESCE((SELECT header FROM sections WHERE sections.document_id = documents.id ORDER BY sections.id LIMIT 1), '')
FROM unnamed JOIN documents ON documents.id = unnamed.document_id ORDER BY unnamed.document_id DESC LIMIT %s

-- name: forget_unnamed
-- The names of documents are written.
DELETE FROM unnamed WHERE document_id = ANY(%s)

-- name: delete_names
-- Documents have other names.
DELETE FROM names WHERE document_id = ANY(%s)

-- name: insert_names
-- The words of documents' names.
INSERT INTO names (document_id, token) SELECT * FROM unnest(%s::bigint[], %s::text[])

-- name: select_named
-- Documents with some words in their names, those with the rarest first; words that very many have tell nothing.
WITH counted AS MATERIALIZED (
    SELECT token, (
      SELECT count(*)
      FROM (SELECT 1 FROM names WHERE names.token = wanted.token {admitted_only} LIMIT %s) AS counted_up_to
    ) AS there
    FROM unnest(%s::text[]) AS wanted (token)
  ),
  found AS (
    SELECT document_id, sum(1000000000000 / there) AS weight, count(*) AS has
    FROM counted JOIN names ON names.token = counted.token COLLATE "C"
    WHERE there BETWEEN 1 AND %s {admitted_only} GROUP BY document_id ORDER BY weight DESC, document_id LIMIT %s
  )
SELECT documents.id, title, COALESCE(source_path, ''), COALESCE(uploaded_as, ''), part_of IS NOT NULL,
  COALESCE((SELECT header FROM sections WHERE sections.document_id = documents.id ORDER BY sections.id LIMIT 1), ''),
  (SELECT count(*) FROM counted WHERE there <= %s) - has
FROM found JOIN documents ON documents.id = document_id ORDER BY weight DESC, document_id
