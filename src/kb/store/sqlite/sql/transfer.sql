-- A database on its way into another one.

-- name: count_documents
-- How many documents there are, those in the bin too.
SELECT (SELECT count(*) FROM documents) + (SELECT count(*) FROM bin)

-- name: select_ids
-- Documents above an id, also what was one.
SELECT id FROM (SELECT id FROM documents WHERE id > :after ORDER BY id LIMIT :limit)
UNION SELECT id FROM (
  SELECT DISTINCT document_id AS id FROM versions WHERE document_id > :after ORDER BY document_id LIMIT :limit
)
UNION SELECT id FROM (SELECT document_id AS id FROM bin WHERE document_id > :after ORDER BY document_id LIMIT :limit)
ORDER BY id LIMIT :limit

-- name: select_keys
-- Keys of a table above one.
SELECT {key} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT ?

-- name: select_rows
-- Rows of a table, from above a key to another.
SELECT {columns} FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key}, {order}

-- name: insert_row
-- A row of a table.
INSERT INTO {table} ({columns}) VALUES ({values})

-- name: delete_row
-- A row by its key.
DELETE FROM {table} WHERE {key} = ?

-- name: select_tags
-- The tags of documents, from above an id to another.
SELECT document_id, name FROM document_tags JOIN tags ON tags.id = tag_id
WHERE document_id > ? AND document_id <= ? ORDER BY document_id, name

-- name: select_chunks
-- How many chunks documents have, and the first and the last of them.
SELECT document_id, count(*), min(id), max(id) FROM chunks WHERE document_id > ? AND document_id <= ? GROUP BY document_id

-- name: select_contents
-- How many bytes the former contents of documents take.
SELECT document_id, id, length(chunks), COALESCE(length(vectors), 0) FROM former_contents
WHERE document_id > ? AND document_id <= ? ORDER BY document_id, id

-- name: select_former
-- The former contents of a document.
SELECT id, chunks, vectors FROM former_contents WHERE document_id = ? ORDER BY id

-- name: insert_content
-- A former content. In a file its id may have been given before, to one that is about to go from here, too.
INSERT OR REPLACE INTO former_contents (id, document_id, chunks, vectors) VALUES (?, ?, ?, ?)

-- name: select_last_ids
-- The highest id of each kind that was ever given.
SELECT name, max(id) FROM (
  SELECT name, id FROM last_ids
  UNION ALL SELECT 'documents', max(id) FROM documents
  UNION ALL SELECT 'chunks', max(id) FROM chunks
  UNION ALL SELECT 'jobs', max(id) FROM jobs
  UNION ALL SELECT 'contents', COALESCE(max(id), 0) FROM former_contents
  UNION ALL SELECT 'operations', COALESCE(max(id), 0) FROM operations
  UNION ALL SELECT 'audit', COALESCE(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'
) GROUP BY name

-- name: raise_last_id
-- No id of a kind up to this one is given any more.
UPDATE last_ids SET id = max(id, ?) WHERE name = ?

-- name: delete_audit_sequence
-- The highest id of an audit line is not known any more.
DELETE FROM sqlite_sequence WHERE name = 'audit'

-- name: insert_audit_sequence
-- No audit line has an id above this one.
INSERT INTO sqlite_sequence (name, seq) VALUES ('audit', ?)

-- name: set_beginning
-- From when on history is whole.
UPDATE history SET begins = ?

-- name: delete_unused_tags
-- Tags go that no document carries.
DELETE FROM tags WHERE id NOT IN (SELECT tag_id FROM document_tags)

-- name: set_replaced
-- A document stands in the place of another one, or of none.
UPDATE documents SET replaces = ? WHERE id = ?

-- name: delete_document
-- A document by itself.
DELETE FROM documents WHERE id = ?

-- name: is_used
-- Whether there is anything.
SELECT EXISTS (SELECT 1 FROM documents) OR EXISTS (SELECT 1 FROM versions) OR EXISTS (SELECT 1 FROM bin)
  OR EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM audit) OR EXISTS (SELECT 1 FROM folders)

-- name: select_made
-- What each document holds and when it was made, those in the bin too.
SELECT id, content_hash, created_at FROM documents
UNION ALL SELECT document_id, content_hash, created_at FROM bin JOIN versions USING (document_id, number)
ORDER BY 1

-- name: is_worked_on
-- Whether anybody did anything but import.
SELECT EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM audit)

-- name: is_arriving
-- Whether the database is a copy that no engine has used yet.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'arrival')

-- name: create_arrival
-- Where a copy is from, and whether it is whole. An engine that begins to use the database drops it.
CREATE TABLE IF NOT EXISTS arrival (only INTEGER PRIMARY KEY CHECK (only = 1), source TEXT NOT NULL, done INTEGER NOT NULL)

-- name: select_arrival
-- Likewise.
SELECT source, done FROM arrival

-- name: set_arrival
-- It is from there.
INSERT OR REPLACE INTO arrival VALUES (1, ?, ?)

-- name: drop_arrival
-- The database stands for itself.
DROP TABLE arrival
