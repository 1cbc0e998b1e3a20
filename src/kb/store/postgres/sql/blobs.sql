-- Uploaded files.

-- name: insert_content
-- Insert a content. Its blocks follow.
INSERT INTO blob_contents (size) VALUES (0) RETURNING id

-- name: insert_block
-- Insert the next bytes of a content.
INSERT INTO blob_blocks (content_id, number, block) VALUES (%s, %s, %b)

-- name: set_size
-- Record that a content is complete.
UPDATE blob_contents SET size = %s WHERE id = %s

-- name: insert_name
-- Give a content a name, unless the name is in use.
INSERT INTO blobs (name, content_id) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING RETURNING content_id

-- name: find
-- Select the content of a name, and its size.
SELECT content_id, size FROM blobs JOIN blob_contents ON id = content_id WHERE name = %s

-- name: select_block
-- Select a block of a content.
SELECT block FROM blob_blocks WHERE content_id = %s AND number = %s

-- name: lock_contents
-- Lock the contents of names until the end of the transaction, so that nobody adds or removes a name.
SELECT id FROM blob_contents WHERE id IN (SELECT content_id FROM blobs WHERE name = ANY(%s)) ORDER BY id FOR UPDATE

-- name: delete_names
-- Delete names.
DELETE FROM blobs WHERE name = ANY(%s)

-- name: delete_contents
-- Delete the contents without a name.
DELETE FROM blob_contents WHERE id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM blobs WHERE content_id = blob_contents.id)

-- name: select_names
-- Select the names that begin with a prefix, after a name and in order, with their size and their age in seconds.
SELECT name, size, extract(epoch FROM clock_timestamp() - created_at)::double precision
FROM blobs JOIN blob_contents ON id = content_id
WHERE name > %(after)s AND starts_with(name, %(prefix)s) ORDER BY name LIMIT %(limit)s

-- name: share_place
-- Select whether files are outside the database, and keep this until the end of the transaction.
SELECT is_outside FROM blob_place FOR KEY SHARE

-- name: lock_place
-- Lock the place of files, and select its id and whether files are outside the database.
SELECT id, is_outside FROM blob_place FOR UPDATE

-- name: set_outside
-- Record that files are outside the database.
UPDATE blob_place SET is_outside = true

-- name: holds_files
-- Whether the database contains files.
SELECT EXISTS (SELECT 1 FROM blobs)
