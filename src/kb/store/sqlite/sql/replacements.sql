-- Documents in the place of others.

-- name: has_links
-- Whether any document stands in the place of another one, or ever did.
SELECT
  EXISTS (SELECT 1 FROM documents WHERE replaces IS NOT NULL)
  OR EXISTS (SELECT 1 FROM versions WHERE replaces IS NOT NULL)

-- name: select_links
-- What stands in the place of documents, for their ids in a JSON array, and of these in turn, and whether it is there or
-- in the bin.
WITH RECURSIVE link (replaced, id, is_there) AS (
  SELECT replaces, id, TRUE FROM documents WHERE replaces IN (SELECT value FROM json_each(:ids))
  UNION
  SELECT replaces, document_id, FALSE FROM versions CROSS JOIN bin USING (document_id, number)
  WHERE replaces IN (SELECT value FROM json_each(:ids))
  UNION
  SELECT replaces, documents.id, TRUE FROM link CROSS JOIN documents ON replaces = link.id
  UNION
  SELECT replaces, document_id, FALSE
  FROM link CROSS JOIN versions ON replaces = link.id CROSS JOIN bin USING (document_id, number)
)
SELECT replaced, id, is_there FROM link ORDER BY id

-- name: select_replaced
-- What a document replaces, or did when it was deleted.
SELECT replaces FROM documents WHERE id = :id
UNION ALL SELECT replaces FROM bin JOIN versions USING (document_id, number) WHERE document_id = :id

-- name: pass_on
-- What stands in the place of a document stands in that of another one, or of none.
UPDATE documents SET replaces = nullif(:other, id) WHERE replaces = :id

-- name: pass_on_in_bin
-- Likewise what is in the bin.
UPDATE versions SET replaces = nullif(:other, document_id)
WHERE replaces = :id AND EXISTS (SELECT 1 FROM bin WHERE bin.document_id = versions.document_id AND bin.number = versions.number)

-- name: pass_on_former
-- Likewise what ever did.
UPDATE versions SET replaces = nullif(:other, document_id) WHERE replaces = :id
