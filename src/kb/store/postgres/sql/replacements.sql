-- Documents that replace others.

-- name: select_links
-- Select the replacements of documents, and the replacements of these, and whether each is in the bin.
WITH RECURSIVE link (replaced, id, is_there) AS (
  SELECT replaces, each.id, each.is_there FROM places AS each WHERE replaces $in_ids
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
