-- Documents with their tags and chunks.

-- name: select_documents
-- Documents with their tags; where they are looked for and the condition are put in.
SELECT
  id, title, source_path, doc_type, content_hash, $tags AS tags, created_at, updated_at, date, own_tags,
  uploaded_as AS filename, title_given, replaces, omitted, language, $optional_fields
FROM {source} WHERE {condition}

-- name: where_id
-- It is one.
id = :id

-- name: chunk
-- The columns of a chunk and of what it stands under.
chunks.id, chunk_index AS "index", COALESCE(sections.header, '') AS header, text, line_start, line_end, char_start, char_end,
  sections.heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id

-- name: select_chunks
-- A document's chunks in order, from one on.
SELECT $chunk WHERE chunks.document_id = :id AND chunk_index >= :start ORDER BY chunk_index LIMIT :limit

-- name: select_chunks_between
-- The chunks that hold characters of a document from one to before another.
SELECT $chunk WHERE chunks.document_id = :id AND char_end > :start AND char_start < :end ORDER BY chunk_index

-- name: select_chunk_places
-- Where a document's chunks stand, in order.
SELECT chunks.id, chunk_index AS "index", sections.heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = :id ORDER BY chunk_index

-- name: select_first_chunks
-- The first chunks of some documents.
SELECT document_id, id FROM chunks WHERE document_id $in_ids AND chunk_index < :most

-- name: select_extent
-- How many chunks a document has, and how many characters.
SELECT count(*), COALESCE(max(char_end), 0) FROM chunks WHERE document_id = :id

-- name: find_by_content
-- The notes, or else files, that hold this content under this path, the oldest first. As the path, which many documents may
-- lack, is put together, it is not looked up instead of the hash.
SELECT id FROM documents
WHERE content_hash = :content_hash AND source_path || '' IS NOT DISTINCT FROM CAST(:source_path AS text)
  AND (doc_type = 'note') = :note
ORDER BY id

-- name: find_by_body
-- The notes without a path that say the same, the oldest first.
SELECT id FROM documents
WHERE content_hash = :body_hash AND source_path || '' IS NULL AND doc_type = 'note'
UNION
SELECT documents.id FROM note_bodies JOIN documents ON documents.id = document_id
WHERE body_hash = :body_hash AND source_path || '' IS NULL AND doc_type = 'note'
ORDER BY id

-- name: insert_body
-- What a note says, if its content_hash does not tell.
INSERT INTO note_bodies (document_id, body_hash) VALUES (:id, :body_hash)

-- name: delete_body
-- Nothing is known of what a note says.
DELETE FROM note_bodies WHERE document_id = :id

-- name: find_by_path
-- The oldest document at a path.
SELECT id FROM documents WHERE source_path = :source_path ORDER BY id LIMIT 1

-- name: update_filename
-- What the file is called that a document came from.
UPDATE documents SET uploaded_as = :filename WHERE id = :id

-- name: update_source_path
-- Where a document comes from.
UPDATE documents SET source_path = :source_path WHERE id = :id

-- name: select_source_path
-- Where a document comes from.
SELECT source_path FROM documents WHERE id = :id

-- name: stamp_document
-- When a document was changed.
UPDATE documents SET updated_at = CAST(:at AS $timestamp) WHERE id = :id

-- name: touch_document
-- A document was changed.
UPDATE documents SET updated_at = $greatest(CAST(:now AS $timestamp), COALESCE(updated_at, created_at)) WHERE id = :id

-- name: select_beginning_with
-- The documents of a type whose first chunk begins so.
SELECT documents.id FROM documents JOIN chunks ON document_id = documents.id AND chunk_index = 0
WHERE doc_type = :doc_type AND substr(text, 1, length(CAST(:beginning AS text))) = CAST(:beginning AS text)

-- name: delete_document
-- A document by itself; what was kept of it.
DELETE FROM documents WHERE id = :id RETURNING content_hash, doc_type

-- name: select_kept
-- What may be kept of a document's file.
SELECT content_hash, doc_type FROM documents WHERE id = :id

-- name: select_parts
-- The documents that came inside a document.
SELECT id, source_path FROM documents WHERE part_of = :id ORDER BY id

-- name: select_whole
-- The document that a document came inside.
SELECT part_of FROM documents WHERE id = :id

-- name: release_parts
-- The documents that came inside a document stand by themselves.
UPDATE documents SET part_of = NULL WHERE part_of = :id

-- name: count_documents
-- How many documents there are; the condition is put in.
SELECT count(*) FROM documents WHERE {condition}

-- name: count_by_type
-- How many documents there are of each type; the condition is put in.
SELECT doc_type, count(*) FROM documents WHERE {condition} GROUP BY doc_type ORDER BY doc_type

-- name: count_by_language
-- How many documents there are in each language, the most first; the condition is put in.
SELECT language, count(*) FROM documents WHERE language IS NOT NULL AND {condition}
GROUP BY language ORDER BY count(*) DESC, language

-- name: count_chunks_of
-- How many chunks some documents have; the condition is put in.
SELECT count(*) FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition})

-- name: is_file_needed
-- Whether a document, or a former version of one, came from the file with this content.
SELECT EXISTS (SELECT 1 FROM documents WHERE content_hash = :hash AND doc_type <> 'note')
  OR EXISTS (SELECT 1 FROM versions WHERE content_hash = :hash AND doc_type <> 'note')

-- name: select_file_hashes
-- The files that documents and their former versions came from.
SELECT content_hash FROM documents WHERE doc_type <> 'note'
UNION SELECT content_hash FROM versions WHERE doc_type <> 'note'

-- name: note_unneeded_file
-- A kept file lost its last document.
INSERT INTO unneeded_files VALUES (:hash) ON CONFLICT DO NOTHING

-- name: take_unneeded_files
-- The files that were noted, which are not any more.
DELETE FROM unneeded_files RETURNING content_hash

-- name: select_now
-- What is now.
SELECT $now
