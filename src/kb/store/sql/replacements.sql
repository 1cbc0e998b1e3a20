-- Documents that replace others.

-- name: has_links
-- Whether any document replaces another one, or ever did.
SELECT
  EXISTS (SELECT 1 FROM documents WHERE replaces IS NOT NULL)
  OR EXISTS (SELECT 1 FROM versions WHERE replaces IS NOT NULL)

-- name: select_replaced
-- Select the document that a document replaces, or replaced when it was deleted.
SELECT replaces FROM documents WHERE id = :id
UNION ALL
SELECT replaces FROM bin JOIN versions ON versions.document_id = bin.document_id AND versions.number = bin.number
WHERE bin.document_id = :id

-- name: pass_on
-- Let the replacements of a document replace another one, or none.
UPDATE documents SET replaces = nullif(CAST(:other AS bigint), id) WHERE replaces = :id

-- name: pass_on_in_bin
-- Let the replacements in the bin replace another one, or none.
UPDATE versions SET replaces = nullif(CAST(:other AS bigint), document_id)
WHERE replaces = :id
  AND EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)

-- name: pass_on_former
-- Let the replacements among earlier versions replace another one, or none.
UPDATE versions SET replaces = nullif(CAST(:other AS bigint), document_id) WHERE replaces = :id
