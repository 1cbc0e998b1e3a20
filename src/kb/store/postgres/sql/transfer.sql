-- A database on its way into another one.

-- name: count_documents
-- How many documents there are, those in the bin too.
SELECT (SELECT count(*) FROM documents) + (SELECT count(*) FROM bin)

-- name: select_ids
-- Documents above an id, also what was one.
SELECT id FROM (SELECT id FROM documents WHERE id > %(after)s ORDER BY id LIMIT %(limit)s) AS there
UNION SELECT id FROM (
  SELECT DISTINCT document_id AS id FROM versions WHERE document_id > %(after)s ORDER BY document_id LIMIT %(limit)s
) AS former
UNION SELECT id FROM (
  SELECT document_id AS id FROM bin WHERE document_id > %(after)s ORDER BY document_id LIMIT %(limit)s
) AS binned
ORDER BY id LIMIT %(limit)s

-- name: select_keys
-- Keys of a table above one.
SELECT {key} FROM {table} WHERE {key} > %s ORDER BY {key} LIMIT %s

-- name: select_rows
-- Rows of a table, from above a key to another.
SELECT {columns} FROM {table} WHERE {key} > %s AND {key} <= %s ORDER BY {key}, {order}

-- name: copy_rows
-- Rows of a table.
COPY {table} ({columns}) FROM STDIN

-- name: copy_vectors
-- Vectors, in the format that pgvector sends them in; their table is put in.
COPY {vectors} (chunk_id, document_id, embedding) FROM STDIN (FORMAT binary)

-- name: delete_rows
-- Rows by their keys.
DELETE FROM {table} WHERE {key} = ANY(%s)

-- name: select_tags
-- The tags of documents, from above an id to another.
SELECT document_id, tag FROM document_tags WHERE document_id > %s AND document_id <= %s ORDER BY document_id, tag

-- name: select_chunks
-- How many chunks documents have, and the first and the last of them.
SELECT document_id, count(*), min(id), max(id) FROM chunks WHERE document_id > %s AND document_id <= %s GROUP BY document_id

-- name: select_contents
-- How many bytes the former contents of documents take.
SELECT document_id, id, octet_length(chunks), COALESCE(octet_length(vectors), 0) FROM former_contents
WHERE document_id > %s AND document_id <= %s ORDER BY document_id, id

-- name: select_former
-- The former contents of a document.
SELECT id, chunks, vectors FROM former_contents WHERE document_id = %s ORDER BY id

-- name: take_section_ids
-- So many ids of sections.
SELECT nextval(pg_get_serial_sequence('sections', 'id')) FROM generate_series(1, %s)

-- name: select_last_ids
-- The highest id of each kind that was ever given.
SELECT 'documents', GREATEST((SELECT CASE WHEN is_called THEN last_value END FROM document_ids), (SELECT max(id) FROM documents))
UNION ALL
SELECT 'chunks', GREATEST((SELECT CASE WHEN is_called THEN last_value END FROM chunk_ids), (SELECT max(id) FROM chunks))
UNION ALL SELECT 'jobs', GREATEST(pg_sequence_last_value(pg_get_serial_sequence('jobs', 'id')), (SELECT max(id) FROM jobs))
UNION ALL SELECT 'audit', GREATEST(pg_sequence_last_value(pg_get_serial_sequence('audit', 'id')), (SELECT max(id) FROM audit))
UNION ALL SELECT 'operations', (SELECT max(id) FROM operations)
UNION ALL SELECT 'contents', (SELECT max(id) FROM former_contents)

-- name: set_last_id
-- The next id of a kind is above this one.
SELECT setval(%s::regclass, %s)

-- name: set_beginning
-- From when on history is whole.
UPDATE history SET begins = %s

-- name: is_indexed
-- Whether a table of vectors, which is put in, has its index.
SELECT to_regclass('kb.{vectors}_nearest') IS NOT NULL

-- name: analyze
-- Let the planner know how much there is.
ANALYZE documents, document_tags, sections, chunks, vectors_a, vectors_b, terms, postings, versions, jobs, audit

-- name: is_used
-- Whether there is anything.
SELECT EXISTS (SELECT 1 FROM documents) OR EXISTS (SELECT 1 FROM versions) OR EXISTS (SELECT 1 FROM bin)
  OR EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM audit) OR EXISTS (SELECT 1 FROM folders)

-- name: is_arriving
-- Whether the database is a copy that no engine has used yet.
SELECT to_regclass('kb.arrival') IS NOT NULL

-- name: create_arrival
-- Where a copy is from, and whether it is whole. An engine that begins to use the database drops it.
CREATE TABLE IF NOT EXISTS arrival (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), source text NOT NULL, done boolean NOT NULL)

-- name: select_arrival
-- Likewise.
SELECT source, done FROM arrival

-- name: set_arrival
-- It is from there.
INSERT INTO arrival (source, done) VALUES (%s, %s)
ON CONFLICT (only_row) DO UPDATE SET source = excluded.source, done = excluded.done

-- name: drop_arrival
-- The database stands for itself.
DROP TABLE arrival
