-- Documents with their tags and chunks.

-- name: select_documents
-- Select documents with their tags. The source and the condition are filled in.
SELECT
  id, title, source_path, doc_type, content_hash, $tags AS tags, created_at, updated_at, date, own_tags,
  uploaded_as AS filename, title_given, replaces, omitted, language, $optional_fields
FROM {source} WHERE {condition}

-- name: where_id
-- A document by id.
id = :id

-- name: chunk
-- The columns of a chunk and its section.
chunks.id, chunk_index AS "index", COALESCE(sections.header, '') AS header, text, line_start, line_end, char_start, char_end,
  sections.heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id

-- name: select_chunks
-- Select a document's chunks in order, from an index on.
SELECT $chunk WHERE chunks.document_id = :id AND chunk_index >= :start ORDER BY chunk_index LIMIT :limit

-- name: select_chunks_between
-- Select the chunks with characters of a document in a range. The end is excluded.
SELECT $chunk WHERE chunks.document_id = :id AND char_end > :start AND char_start < :end ORDER BY chunk_index

-- name: select_chunk_places
-- Select the heading and page of each chunk of a document, in order.
SELECT chunks.id, chunk_index AS "index", sections.heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = :id ORDER BY chunk_index

-- name: select_first_chunks
-- Select the first chunks of some documents.
SELECT document_id, id FROM chunks WHERE document_id $in_ids AND chunk_index < :most

-- name: select_extent
-- Count a document's chunks and characters.
SELECT count(*), COALESCE(max(char_end), 0) FROM chunks WHERE document_id = :id

-- name: find_by_content
-- Find the notes, or the files, with this content and path, oldest first. Many documents may lack a path, so the
-- expression keeps the database from using the index on paths instead of the index on hashes.
SELECT id FROM documents
WHERE content_hash = :content_hash AND source_path || '' IS NOT DISTINCT FROM CAST(:source_path AS text)
  AND (doc_type = 'note') = :note
ORDER BY id

-- name: find_by_body
-- Find the notes without a path that have this text, the oldest first.
SELECT id FROM documents
WHERE content_hash = :body_hash AND source_path || '' IS NULL AND doc_type || '' = 'note'
UNION
SELECT documents.id FROM note_bodies JOIN documents ON documents.id = document_id
WHERE body_hash = :body_hash AND source_path || '' IS NULL AND doc_type || '' = 'note'
ORDER BY id

-- name: insert_body
-- Store the hash of a note's text without front matter, if it differs from the content_hash.
INSERT INTO note_bodies (document_id, body_hash) VALUES (:id, :body_hash)

-- name: delete_body
-- Forget the hash of a note's text without front matter.
DELETE FROM note_bodies WHERE document_id = :id

-- name: find_by_path
-- Find the oldest document at a path.
SELECT id FROM documents WHERE source_path = :source_path ORDER BY id LIMIT 1

-- name: update_filename
-- Set the name of a document's file.
UPDATE documents SET uploaded_as = :filename WHERE id = :id

-- name: update_source_path
-- Set a document's source path.
UPDATE documents SET source_path = :source_path WHERE id = :id

-- name: select_source_path
-- Select a document's source path.
SELECT source_path FROM documents WHERE id = :id

-- name: stamp_document
-- Set the time of a document's last change.
UPDATE documents SET updated_at = CAST(:at AS $timestamp) WHERE id = :id

-- name: touch_document
-- Set the time of a document's last change to now.
UPDATE documents SET updated_at = $greatest(CAST(:now AS $timestamp), COALESCE(updated_at, created_at)) WHERE id = :id

-- name: select_beginning_with
-- Select the documents of a type whose first chunk begins with a text.
SELECT documents.id FROM documents JOIN chunks ON document_id = documents.id AND chunk_index = 0
WHERE doc_type = :doc_type AND substr(text, 1, length(CAST(:beginning AS text))) = CAST(:beginning AS text)

-- name: delete_document
-- Delete one document, without its parts. Return the fields that name its file.
DELETE FROM documents WHERE id = :id RETURNING content_hash, doc_type

-- name: select_kept
-- Select the fields that name a document's file, and its language.
SELECT content_hash, doc_type, language FROM documents WHERE id = :id

-- name: select_chunk_ids
-- Select the ids of a document's chunks.
SELECT id FROM chunks WHERE document_id = :id

-- name: lift_chunks
-- Free the indexes of some chunks of a document, so that these chunks can change places.
UPDATE chunks SET chunk_index = -1 - chunk_index WHERE document_id = :document_id AND id $in_ids

-- name: place_chunk
-- Set the place of a chunk.
UPDATE chunks SET
  chunk_index = :index, line_start = :line_start, line_end = :line_end, char_start = :char_start, char_end = :char_end
WHERE id = :id AND document_id = :document_id

-- name: delete_unused_sections
-- Delete the sections of a document that no chunk has any more.
DELETE FROM sections WHERE document_id = :id
  AND id NOT IN (SELECT section_id FROM chunks WHERE document_id = :id AND section_id IS NOT NULL)

-- name: select_sections
-- Select the sections of a document.
SELECT header, heading, id FROM sections WHERE document_id = :id

-- name: select_parts
-- Select the documents that came inside a document.
SELECT id, source_path FROM documents WHERE part_of = :id ORDER BY id

-- name: select_whole
-- Select the document that contains this one.
SELECT part_of FROM documents WHERE id = :id

-- name: release_parts
-- Make the parts of a document independent.
UPDATE documents SET part_of = NULL WHERE part_of = :id

-- name: count_documents
-- Count the documents that meet the condition.
SELECT count(*) FROM documents WHERE {condition}

-- name: select_repeated
-- Select the contents that several documents have, apart from documents inside others: the newest documents first.
SELECT content_hash, count(*), max(id) FROM documents WHERE part_of IS NULL AND {condition}
GROUP BY content_hash HAVING count(*) > 1 AND max(id) < {mark} ORDER BY max(id) DESC LIMIT {mark}

-- name: where_hash
-- The documents with a content that are not inside others and meet a condition, oldest first.
content_hash = {mark} AND part_of IS NULL AND {condition} ORDER BY id

-- name: count_by_type
-- Count the documents of each type that meet the condition.
SELECT doc_type, count(*) FROM documents WHERE {condition} GROUP BY doc_type ORDER BY doc_type

-- name: count_by_language
-- Count the documents in each language that meet the condition, most frequent first.
SELECT language, count(*) FROM documents WHERE language IS NOT NULL AND {condition}
GROUP BY language ORDER BY count(*) DESC, language

-- name: count_chunks_of
-- Count the chunks of the documents that meet the condition.
SELECT count(*) FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition})

-- name: is_file_needed
-- Whether a document, or an earlier version, came from the file with this content.
SELECT EXISTS (SELECT 1 FROM documents WHERE content_hash = :hash AND doc_type <> 'note')
  OR EXISTS (SELECT 1 FROM versions WHERE content_hash = :hash AND doc_type <> 'note')

-- name: select_file_hashes
-- Select the files of all documents and earlier versions.
SELECT content_hash FROM documents WHERE doc_type <> 'note'
UNION SELECT content_hash FROM versions WHERE doc_type <> 'note'

-- name: note_unneeded_file
-- Note that a kept file lost its last document.
INSERT INTO unneeded_files VALUES (:hash) ON CONFLICT DO NOTHING

-- name: take_unneeded_files
-- Take all noted files.
DELETE FROM unneeded_files RETURNING content_hash

-- name: select_now
-- The current time.
SELECT $now
