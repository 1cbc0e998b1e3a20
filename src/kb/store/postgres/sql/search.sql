-- Search. Filters are put together in document_query.py, full text in words.py.

-- name: select_hits
-- Chunks with what a search result says of their documents.
SELECT
  chunks.id AS chunk_id, chunk_index AS index, documents.id AS document_id, title, source_path, doc_type, text, line_start,
  line_end, char_start, char_end, COALESCE(array_to_json(heading)::text, '[]') AS heading, page,
  (SELECT COALESCE(json_agg(tag ORDER BY tag)::text, '[]') FROM document_tags WHERE document_id = documents.id) AS tags,
  created_at, updated_at, date, source, language, changed_by, changed_with
FROM chunks JOIN documents ON documents.id = chunks.document_id
LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id = ANY(%s)

-- name: select_languages
-- The languages that documents are in, each found behind the one before.
WITH RECURSIVE found (language) AS (
  SELECT min(language) FROM documents
  UNION ALL
  SELECT (SELECT min(language) FROM documents WHERE language > found.language) FROM found WHERE found.language IS NOT NULL
)
SELECT language FROM found WHERE language IS NOT NULL

-- name: select_documents_of
-- The documents of chunks.
SELECT id, document_id FROM chunks WHERE id = ANY(%s)

-- name: select_generation
-- How often chunks were written.
SELECT number FROM generation

-- name: select_change
-- The number of the last transaction that changed something: one after the other, so a later change has a later one.
SELECT xmin::text::bigint FROM generation

-- name: note_change
-- This transaction is that one, if it changed something.
UPDATE generation SET number = number WHERE pg_current_xact_id_if_assigned() IS NOT NULL

-- name: select_identity
-- The server and its replicas have the one, the database on them the other.
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()

-- name: update_generation
-- Chunks were written: a word to those who keep some in memory.
WITH next AS (UPDATE generation SET number = number + 1 RETURNING number)
SELECT pg_notify('kb_generation', number::text) FROM next
