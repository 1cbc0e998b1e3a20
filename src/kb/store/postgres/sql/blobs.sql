-- Uploaded files.

-- name: insert_content
-- A content, whose blocks come next.
INSERT INTO blob_contents (size) VALUES (0) RETURNING id

-- name: insert_block
-- The next bytes of a content.
INSERT INTO blob_blocks (content_id, number, block) VALUES (%s, %s, %b)

-- name: set_size
-- A content is whole.
UPDATE blob_contents SET size = %s WHERE id = %s

-- name: insert_name
-- A content gets a name; nothing if there is such a name.
INSERT INTO blobs (name, content_id) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING RETURNING content_id

-- name: find
-- The content of a name, and its size.
SELECT content_id, size FROM blobs JOIN blob_contents ON id = content_id WHERE name = %s

-- name: select_block
-- A block of a content.
SELECT block FROM blob_blocks WHERE content_id = %s AND number = %s

-- name: lock_contents
-- The contents of names, for none else to give them another name, or take one, until the end of the transaction.
SELECT id FROM blob_contents WHERE id IN (SELECT content_id FROM blobs WHERE name = ANY(%s)) ORDER BY id FOR UPDATE

-- name: delete_names
-- Names go.
DELETE FROM blobs WHERE name = ANY(%s)

-- name: delete_contents
-- Of these contents those go that have no name any more.
DELETE FROM blob_contents WHERE id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM blobs WHERE content_id = blob_contents.id)

-- name: select_names
-- The names that begin so, with their size, and for how many seconds they are there; in order, after one.
SELECT name, size, extract(epoch FROM clock_timestamp() - created_at)::double precision
FROM blobs JOIN blob_contents ON id = content_id
WHERE name > %(after)s AND starts_with(name, %(prefix)s) ORDER BY name LIMIT %(limit)s

-- name: share_place
-- Whether files are outside, which stays so until the end of the transaction.
SELECT is_outside FROM blob_place FOR KEY SHARE

-- name: lock_place
-- What a place outside must name, and whether there is one, for none else to change it.
SELECT id, is_outside FROM blob_place FOR UPDATE

-- name: set_outside
-- The files are outside from now on.
UPDATE blob_place SET is_outside = true

-- name: holds_files
-- Whether there are files in the database.
SELECT EXISTS (SELECT 1 FROM blobs)
