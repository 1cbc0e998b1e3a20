-- Documents with their tags and chunks.

-- name: select_documents
-- Documents with their tags. `document_query.py` makes the condition.
SELECT
  id, title, source_path, doc_type, content_hash,
  (SELECT COALESCE(json_agg(tag ORDER BY tag)::text, '[]') FROM document_tags WHERE document_id = documents.id) AS tags,
  created_at, updated_at, date, array_to_json(own_tags)::text AS own_tags, uploaded_as AS filename, title_given, source,
  replaces, omitted, language
FROM documents WHERE {condition}

-- name: select_chunks
-- A document's chunks in order, from one on.
SELECT
  chunks.id, chunk_index AS index, COALESCE(header, '') AS header, text, line_start, line_end, char_start, char_end,
  COALESCE(array_to_json(heading)::text, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = %s AND chunk_index >= %s ORDER BY chunk_index LIMIT %s

-- name: select_chunk_places
-- Where a document's chunks stand, in order.
SELECT chunks.id, chunk_index AS index, COALESCE(array_to_json(heading)::text, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = %s ORDER BY chunk_index

-- name: select_first_chunks
-- The first chunks of some documents.
SELECT document_id, id FROM chunks WHERE document_id = ANY(%s) AND chunk_index < %s

-- name: select_chunks_between
-- The chunks that hold characters of a document from one to before another.
SELECT
  chunks.id, chunk_index AS index, COALESCE(header, '') AS header, text, line_start, line_end, char_start, char_end,
  COALESCE(array_to_json(heading)::text, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = %s AND char_end > %s AND char_start < %s ORDER BY chunk_index

-- name: select_extent
-- How many chunks a document has, and how many characters.
SELECT count(*), COALESCE(max(char_end), 0) FROM chunks WHERE document_id = %s

-- name: find_by_content
-- The notes, or else files, that hold this content under this path, the oldest first.
SELECT id FROM documents
WHERE content_hash = %(content_hash)s AND source_path IS NOT DISTINCT FROM %(source_path)s::text
  AND (doc_type = 'note') = %(note)s
ORDER BY id

-- name: find_by_path
-- The oldest document at a path.
SELECT id FROM documents WHERE source_path = %s ORDER BY id LIMIT 1

-- name: take_chunk_ids
-- So many ids above every one that was given.
SELECT nextval('chunk_ids') FROM generate_series(1, %s)

-- name: insert_document
-- A new document; its id.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, date, own_day, own_tags, part_of, uploaded_as, title_given, created_at,
  changed_by, changed_with, changed_why, source, replaces, omitted, language, operation
) VALUES (
  nextval('document_ids'), %(title)s, %(source_path)s, %(doc_type)s, %(content_hash)s, %(date)s, %(own_day)s, %(own_tags)s,
  %(part_of)s, %(filename)s, %(title_given)s, %(now)s, %(by)s, %(client)s, %(why)s, %(source)s, %(replaces)s, %(omitted)s,
  %(language)s,
  (SELECT id FROM operations WHERE key = %(operation_key)s)
) RETURNING id

-- name: update_document
-- What a document holds; a file keeps its name if the new content came without one. No change is older than the one before,
-- whatever the clock says.
UPDATE documents SET
  title = %(title)s, doc_type = %(doc_type)s, content_hash = %(content_hash)s, date = %(date)s, own_day = %(own_day)s,
  own_tags = %(own_tags)s, uploaded_as = COALESCE(%(filename)s, uploaded_as), title_given = %(title_given)s,
  source = %(source)s, replaces = %(replaces)s, omitted = %(omitted)s, language = %(language)s,
  updated_at = GREATEST(%(now)s::timestamptz, updated_at, created_at)
WHERE id = %(id)s

-- name: update_filename
-- What the file is called that a document came from.
UPDATE documents SET uploaded_as = %s WHERE id = %s

-- name: update_source_path
-- Where a document comes from.
UPDATE documents SET source_path = %s WHERE id = %s

-- name: stamp_document
-- When a document was changed.
UPDATE documents SET updated_at = %s WHERE id = %s

-- name: select_source_path
-- Where a document comes from.
SELECT source_path FROM documents WHERE id = %s

-- name: select_beginning_with
-- The documents of a type whose first chunk begins so.
SELECT documents.id FROM documents JOIN chunks ON document_id = documents.id AND chunk_index = 0
WHERE doc_type = %(doc_type)s AND starts_with(text, %(beginning)s)

-- name: touch_document
-- A document was changed.
UPDATE documents SET updated_at = GREATEST(%s::timestamptz, updated_at, created_at) WHERE id = %s

-- name: delete_document
-- A document by itself, and its tags; what was kept of it.
DELETE FROM documents WHERE id = %s RETURNING content_hash, doc_type

-- name: select_kept
-- What may be kept of a document's file.
SELECT content_hash, doc_type FROM documents WHERE id = %s

-- name: select_parts
-- The documents that came inside a document.
SELECT id, source_path FROM documents WHERE part_of = %s ORDER BY id

-- name: select_whole
-- The document that a document came inside.
SELECT part_of FROM documents WHERE id = %s

-- name: release_parts
-- The documents that came inside a document stand by themselves.
UPDATE documents SET part_of = NULL WHERE part_of = %s

-- name: insert_section
-- What chunks of a document stand under.
INSERT INTO sections (document_id, header, heading) VALUES (%s, %s, %s) RETURNING id

-- name: insert_chunk
-- A chunk.
INSERT INTO chunks (
  id, document_id, chunk_index, section_id, text, page, line_start, line_end, char_start, char_end, length
) VALUES (
  %(id)s, %(document_id)s, %(index)s, %(section_id)s, %(text)s, %(page)s, %(line_start)s, %(line_end)s, %(char_start)s,
  %(char_end)s, %(length)s
)

-- name: insert_vector
-- A chunk's vector; the table in use is put in.
INSERT INTO {vectors} (chunk_id, document_id, embedding) VALUES (%s, %s, %s::vector)

-- name: delete_chunks
-- A document's chunks with their vectors and sections.
WITH sections_of AS (DELETE FROM sections WHERE document_id = %(id)s)
DELETE FROM chunks WHERE document_id = %(id)s

-- name: count_by_type
-- How many documents there are of each type; the condition is put in.
SELECT doc_type, count(*) FROM documents WHERE {condition} GROUP BY doc_type ORDER BY doc_type

-- name: count_documents
-- How many documents there are; the condition is put in.
SELECT count(*) FROM documents WHERE {condition}

-- name: count_by_language
-- How many documents there are in each language, the most first; {condition} is put in.
SELECT language, count(*) FROM documents WHERE language IS NOT NULL AND {condition}
GROUP BY language ORDER BY count(*) DESC, language

-- name: count_chunks
-- How many chunks there are.
SELECT chunks FROM statistics

-- name: count_chunks_of
-- How many chunks some documents have; the condition is put in.
SELECT count(*) FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition})

-- name: select_size
-- How many bytes the database takes, without the files in it.
SELECT pg_database_size(current_database()) - pg_total_relation_size('blob_blocks')

-- name: select_tags
-- Every tag in use among some documents, with the number of those; the condition is put in.
SELECT tag, count(*) FROM document_tags
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY tag ORDER BY tag

-- name: select_tags_of
-- A document's tags.
SELECT tag FROM document_tags WHERE document_id = %s

-- name: tag_document
-- A document carries some tags.
INSERT INTO document_tags SELECT %s, unnest(%s::text[]) ON CONFLICT DO NOTHING

-- name: untag_document
-- A document carries some tags no more.
DELETE FROM document_tags WHERE document_id = %s AND tag = ANY(%s::text[])

-- name: is_file_needed
-- Whether a document, or a former version of one, came from the file with this content.
SELECT EXISTS (SELECT 1 FROM documents WHERE content_hash = %(hash)s AND doc_type <> 'note')
  OR EXISTS (SELECT 1 FROM versions WHERE content_hash = %(hash)s AND doc_type <> 'note')

-- name: select_file_hashes
-- The files that documents and their former versions came from.
SELECT content_hash FROM documents WHERE doc_type <> 'note'
UNION SELECT content_hash FROM versions WHERE doc_type <> 'note'

-- name: note_unneeded_file
-- A kept file lost its last document.
INSERT INTO unneeded_files VALUES (%s) ON CONFLICT DO NOTHING

-- name: take_unneeded_files
-- The files that were noted, which are not any more.
DELETE FROM unneeded_files RETURNING content_hash

-- name: select_now
-- What is now.
SELECT now_ms()
