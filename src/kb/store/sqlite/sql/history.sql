-- Former versions and the bin. Triggers count what the former contents take.

-- name: after_until
-- The moment after a version went.
strftime('%Y-%m-%d %H:%M:%f', until, '+0.001 seconds')

-- name: insert_content
-- What a document held.
INSERT INTO former_contents (document_id, chunks) VALUES (:id, :chunks) RETURNING id

-- name: delete_contents
-- What the former versions of a document held.
DELETE FROM former_contents WHERE document_id = :id

-- name: delete_unused_content
-- A content that no former version has.
DELETE FROM former_contents
WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id)
