-- Documents that replace others.

-- name: select_links
-- Select the replacements of documents, and the replacements of these, and whether each is in the bin.
WITH RECURSIVE link (replaced, id, is_there) AS (
  SELECT replaces, id, TRUE FROM documents WHERE replaces $in_ids
  UNION
  SELECT replaces, document_id, FALSE FROM versions CROSS JOIN bin USING (document_id, number) WHERE replaces $in_ids
  UNION
  SELECT replaces, documents.id, TRUE FROM link CROSS JOIN documents ON replaces = link.id
  UNION
  SELECT replaces, document_id, FALSE
  FROM link CROSS JOIN versions ON replaces = link.id CROSS JOIN bin USING (document_id, number)
)
SELECT replaced, id, is_there FROM link ORDER BY id
