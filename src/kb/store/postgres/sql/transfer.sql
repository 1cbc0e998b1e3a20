-- Export and import of a database.

-- name: insert_row
-- Insert a row into a table, with its id.
INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({places})

-- name: select_last_ids
-- Select the highest id of each kind that was ever used.
SELECT 'documents', GREATEST((SELECT CASE WHEN is_called THEN last_value END FROM document_ids), (SELECT max(id) FROM documents))
UNION ALL
SELECT 'chunks', GREATEST((SELECT CASE WHEN is_called THEN last_value END FROM chunk_ids), (SELECT max(id) FROM chunks))
UNION ALL SELECT 'jobs', GREATEST(pg_sequence_last_value(pg_get_serial_sequence('jobs', 'id')), (SELECT max(id) FROM jobs))
UNION ALL SELECT 'audit', GREATEST(pg_sequence_last_value(pg_get_serial_sequence('audit', 'id')), (SELECT max(id) FROM audit))
UNION ALL SELECT 'operations', GREATEST(
  pg_sequence_last_value(pg_get_serial_sequence('operations', 'id')), (SELECT max(id) FROM operations)
)

-- name: select_given_ids
-- Select the highest id of each kind that a row got in this database.
SELECT 'documents', (SELECT CASE WHEN is_called THEN last_value END FROM document_ids)
UNION ALL SELECT 'chunks', (SELECT CASE WHEN is_called THEN last_value END FROM chunk_ids)
UNION ALL SELECT 'jobs', pg_sequence_last_value(pg_get_serial_sequence('jobs', 'id'))

-- name: set_last_id
-- Let the next id of a kind be above this one.
SELECT setval(
  CASE :name::text WHEN 'documents' THEN 'document_ids' WHEN 'chunks' THEN 'chunk_ids' ELSE :name::text || '_id_seq' END::regclass,
  :last
) WHERE :last > 0

-- name: is_indexed
-- Whether a table of vectors has its index. The name of the table is filled in.
SELECT to_regclass('kb.{vectors}_nearest') IS NOT NULL

-- name: analyze
-- Update the planner's statistics.
ANALYZE documents, document_tags, sections, chunks, vectors_a, vectors_b, terms, postings, versions, jobs, audit

-- name: is_unfinished
-- Whether the database contains an unfinished import.
SELECT to_regclass('kb.unfinished_import') IS NOT NULL
