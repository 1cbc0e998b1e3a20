-- Export and import of a database.

-- name: insert_row
-- Insert a row into a table, with its id.
INSERT INTO {table} ({columns}) VALUES ({places})

-- name: select_last_ids
-- Select the highest id of each kind that was ever used.
SELECT name, max(id) FROM (
  SELECT name, id FROM last_ids
  UNION ALL SELECT 'documents', max(id) FROM documents
  UNION ALL SELECT 'chunks', max(id) FROM chunks
  UNION ALL SELECT 'jobs', max(id) FROM jobs
  UNION ALL SELECT 'operations', max(id) FROM operations
  UNION ALL SELECT 'audit', max(id) FROM audit
  UNION ALL SELECT name, seq FROM sqlite_sequence WHERE name IN ('audit', 'operations')
) GROUP BY name

-- name: select_given_ids
-- Select the highest id of each kind that a row got in this database.
SELECT name, id FROM last_ids

-- name: set_last_id
-- Let the next id of a kind be above this one.
DELETE FROM sqlite_sequence WHERE name = :name AND name IN ('audit', 'operations');
INSERT INTO sqlite_sequence (name, seq) SELECT :name, :last WHERE :name IN ('audit', 'operations');
UPDATE last_ids SET id = :last WHERE name = :name

-- name: set_replaced
-- Let a document replace another one, or none.
UPDATE documents SET replaces = ? WHERE id = ?

-- name: is_unfinished
-- Whether the database contains an unfinished import.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_import')
