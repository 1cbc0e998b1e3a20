-- Earlier versions and the bin. These statements also count the size of earlier contents.

-- name: insert_content
-- Insert the content of an earlier version.
WITH content AS (
  INSERT INTO former_contents (document_id, chunks) VALUES (:id, :chunks) RETURNING id, octet_length(chunks) AS size
), counted AS (
  UPDATE history SET size = history.size + (SELECT size FROM content)
)
SELECT id FROM content

-- name: delete_contents
-- Delete the contents of a document's earlier versions.
WITH gone AS (
  DELETE FROM former_contents WHERE document_id = :id
  RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)

-- name: delete_unused_content
-- Delete a content that no earlier version uses.
WITH gone AS (
  DELETE FROM former_contents
  WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id)
  RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)
