-- Former versions and the bin. What the former contents take is counted here.

-- name: insert_content
-- What a document held.
WITH content AS (
  INSERT INTO former_contents (document_id, chunks) VALUES (:id, :chunks) RETURNING id, octet_length(chunks) AS size
), counted AS (
  UPDATE history SET size = history.size + (SELECT size FROM content)
)
SELECT id FROM content

-- name: delete_contents
-- What the former versions of a document held.
WITH gone AS (
  DELETE FROM former_contents WHERE document_id = :id
  RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)

-- name: delete_unused_content
-- A content that no former version has.
WITH gone AS (
  DELETE FROM former_contents
  WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id)
  RETURNING octet_length(chunks) + COALESCE(octet_length(vectors), 0) AS size
)
UPDATE history SET size = size - (SELECT COALESCE(sum(gone.size), 0) FROM gone)
