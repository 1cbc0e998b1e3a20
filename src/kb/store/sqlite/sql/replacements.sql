-- Documents in the place of others.

-- name: select_links
-- What stands in the place of documents, and of these in turn, and whether it is there or in the bin.
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
