-- Documents in the place of others.

-- name: has_links
-- Whether any document stands in the place of another one, or ever did.
SELECT
  EXISTS (SELECT 1 FROM documents WHERE replaces IS NOT NULL)
  OR EXISTS (SELECT 1 FROM versions WHERE replaces IS NOT NULL)

-- name: select_links
-- What stands in the place of documents, and of these in turn, and whether it is there or in the bin.
WITH RECURSIVE link (replaced, id, is_there) AS (
  SELECT replaces, each.id, each.is_there FROM places AS each WHERE replaces = ANY(%(ids)s)
  UNION
  SELECT each.replaces, each.id, each.is_there FROM link JOIN places AS each ON each.replaces = link.id
), places AS NOT MATERIALIZED (
  SELECT replaces, id, true AS is_there FROM documents WHERE replaces IS NOT NULL
  UNION ALL
  SELECT replaces, versions.document_id, false
  FROM versions JOIN bin ON bin.document_id = versions.document_id AND bin.number = versions.number
  WHERE replaces IS NOT NULL
)
SELECT replaced, id, is_there FROM link ORDER BY id

-- name: select_replaced
-- What a document replaces, or did when it was deleted.
SELECT replaces FROM documents WHERE id = %(id)s
UNION ALL
SELECT replaces FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE bin.document_id = %(id)s

-- name: pass_on
-- What stands in the place of a document stands in that of another one, or of none.
UPDATE documents SET replaces = nullif(%(other)s::bigint, id) WHERE replaces = %(id)s

-- name: pass_on_in_bin
-- Likewise what is in the bin.
UPDATE versions SET replaces = nullif(%(other)s::bigint, document_id)
WHERE replaces = %(id)s
  AND EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)

-- name: pass_on_former
-- Likewise what ever did.
UPDATE versions SET replaces = nullif(%(other)s::bigint, document_id) WHERE replaces = %(id)s
