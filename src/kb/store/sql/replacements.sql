-- Documents in the place of others.

-- name: has_links
-- Whether any document stands in the place of another one, or ever did.
SELECT
  EXISTS (SELECT 1 FROM documents WHERE replaces IS NOT NULL)
  OR EXISTS (SELECT 1 FROM versions WHERE replaces IS NOT NULL)

-- name: select_replaced
-- What a document replaces, or did when it was deleted.
SELECT replaces FROM documents WHERE id = :id
UNION ALL
SELECT replaces FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE bin.document_id = :id

-- name: pass_on
-- What stands in the place of a document stands in that of another one, or of none.
UPDATE documents SET replaces = nullif(CAST(:other AS bigint), id) WHERE replaces = :id

-- name: pass_on_in_bin
-- Likewise what is in the bin.
UPDATE versions SET replaces = nullif(CAST(:other AS bigint), document_id)
WHERE replaces = :id
  AND EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)

-- name: pass_on_former
-- Likewise what ever did.
UPDATE versions SET replaces = nullif(CAST(:other AS bigint), document_id) WHERE replaces = :id
