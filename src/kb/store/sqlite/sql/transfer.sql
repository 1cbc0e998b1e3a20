-- A database in an export, and out of one.

-- name: insert_row
-- A row of a table, with the id that it had.
INSERT INTO {table} ({columns}) VALUES ({places})

-- name: select_last_ids
-- The highest id of each kind that was ever given.
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
-- The highest id of a kind that a row was given here.
SELECT name, id FROM last_ids

-- name: set_last_id
-- The next id of a kind is above this one.
DELETE FROM sqlite_sequence WHERE name = :name AND name IN ('audit', 'operations');
INSERT INTO sqlite_sequence (name, seq) SELECT :name, :last WHERE :name IN ('audit', 'operations');
UPDATE last_ids SET id = :last WHERE name = :name

-- name: set_replaced
-- A document stands in the place of another one, or of none.
UPDATE documents SET replaces = ? WHERE id = ?

-- name: is_unfinished
-- Whether the database holds a part of what an import writes.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_import')
