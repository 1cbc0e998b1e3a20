-- Documents with their tags and chunks.

-- name: select_documents
-- Documents with their tags. `document_query.py` makes {source} and {condition}.
SELECT
  id, title, source_path, doc_type, content_hash,
  (SELECT json_group_array(name ORDER BY name) FROM document_tags JOIN tags ON tags.id = tag_id
    WHERE document_id = documents.id) AS tags,
  created_at, updated_at, date, own_tags, uploaded_as AS filename, title_given, source, replaces, omitted,
  language
FROM {source} WHERE {condition}

-- name: select_chunks
-- A document's chunks in order, from one on.
SELECT
  chunks.id, chunk_index AS "index", COALESCE(sections.header, '') AS header, text, line_start, line_end, char_start, char_end,
  COALESCE(sections.heading, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id
WHERE chunks.document_id = ? AND chunk_index >= ? ORDER BY chunk_index LIMIT ?

-- name: select_chunk_places
-- Where a document's chunks stand, in order.
SELECT chunks.id, chunk_index AS "index", COALESCE(sections.heading, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id WHERE chunks.document_id = ? ORDER BY chunk_index

-- name: select_first_chunks
-- The first chunks of the documents of an array of ids.
SELECT document_id, id FROM carray(?) CROSS JOIN chunks ON document_id = value AND chunk_index < ?

-- name: select_chunks_between
-- The chunks that hold characters of a document from one to before another.
SELECT
  chunks.id, chunk_index AS "index", COALESCE(sections.header, '') AS header, text, line_start, line_end, char_start, char_end,
  COALESCE(sections.heading, '[]') AS heading, page
FROM chunks LEFT JOIN sections ON sections.id = section_id
WHERE chunks.document_id = ? AND char_end > ? AND char_start < ? ORDER BY chunk_index

-- name: select_extent
-- How many chunks a document has, and how many characters.
SELECT count(*), COALESCE(max(char_end), 0) FROM chunks WHERE document_id = ?

-- name: find_by_content
-- The notes, or else files, that hold this content under this path, the oldest first. The plus keeps the path, which many documents
-- may lack, from being looked up instead of the hash.
SELECT id FROM documents
WHERE content_hash = :content_hash AND +source_path IS :source_path AND (doc_type = 'note') = :note
ORDER BY id

-- name: find_by_path
-- The oldest document at a path.
SELECT id FROM documents WHERE source_path = ? ORDER BY id LIMIT 1

-- name: take_document_ids
-- So many ids above every one that was ever given; the last of them.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM documents)) + ? WHERE name = 'documents' RETURNING id

-- name: take_chunk_ids
-- Likewise for chunks.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM chunks)) + ? WHERE name = 'chunks' RETURNING id

-- name: insert_document
-- A new document.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, date, own_tags, part_of, uploaded_as, title_given, created_at,
  changed_by, changed_with, changed_why, source, replaces, omitted, language, operation
) VALUES (
  :id, :title, :source_path, :doc_type, :content_hash, :date, :own_tags, :part_of, :filename, :title_given, :now,
  :by, :client, :why, :source, :replaces, :omitted, :language,
  (SELECT id FROM operations WHERE key = :operation_key)
)

-- name: update_document
-- What a document holds; a file keeps its name if the new content came without one. No change is older than the one before,
-- whatever the clock says.
UPDATE documents SET
  title = :title, doc_type = :doc_type, content_hash = :content_hash, date = :date, own_tags = :own_tags,
  uploaded_as = COALESCE(:filename, uploaded_as), title_given = :title_given, source = :source, replaces = :replaces,
  omitted = :omitted, language = :language,
  updated_at = max(:now, COALESCE(updated_at, created_at))
WHERE id = :id

-- name: update_filename
-- What the file is called that a document came from.
UPDATE documents SET uploaded_as = ? WHERE id = ?

-- name: update_source_path
-- Where a document comes from.
UPDATE documents SET source_path = ? WHERE id = ?

-- name: select_beginning_with
-- The documents of a type whose first chunk begins so.
SELECT documents.id FROM documents JOIN chunks ON document_id = documents.id AND chunk_index = 0
WHERE doc_type = :doc_type AND substr(text, 1, length(:beginning)) = :beginning

-- name: touch_document
-- A document was changed.
UPDATE documents SET updated_at = max(?, COALESCE(updated_at, created_at)) WHERE id = ?

-- name: delete_document
-- A document by itself; what was kept of it.
DELETE FROM documents WHERE id = ? RETURNING content_hash, doc_type

-- name: select_kept
-- What may be kept of a document's file.
SELECT content_hash, doc_type FROM documents WHERE id = ?

-- name: select_parts
-- The documents that came inside a document.
SELECT id, source_path FROM documents WHERE part_of = ?

-- name: select_whole
-- The document that a document came inside.
SELECT part_of FROM documents WHERE id = ?

-- name: release_parts
-- The documents that came inside a document stand by themselves.
UPDATE documents SET part_of = NULL WHERE part_of = ?

-- name: insert_chunk
-- A chunk; triggers write its full text, for which its section must be there.
INSERT INTO chunks (
  id, document_id, chunk_index, section_id, text, page, line_start, line_end, char_start, char_end, segmented,
  variants
) VALUES (
  :id, :document_id, :index, :section_id, :text, :page, :line_start, :line_end, :char_start, :char_end, :segmented,
  :variants
)

-- name: insert_section
-- What chunks of a document stand under.
INSERT INTO sections (document_id, header, heading, segmented, variants) VALUES (?, ?, ?, ?, ?) RETURNING id

-- name: select_chunk_ids
-- A document's chunks.
SELECT id FROM chunks WHERE document_id = ?

-- name: delete_chunks
-- A document's chunks; triggers remove their full text, for which their sections must still be there.
DELETE FROM chunks WHERE document_id = ?

-- name: delete_sections
-- A document's sections, once nothing stands under them.
DELETE FROM sections WHERE document_id = ?

-- name: count_by_type
-- How many documents there are of each type; {condition} is put in.
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
SELECT count(*) FROM chunks

-- name: count_chunks_of
-- How many chunks some documents have; {condition} is put in.
SELECT count(*) FROM chunks WHERE document_id IN (SELECT id FROM documents WHERE {condition})

-- name: select_tags
-- Every tag in use with the number of its documents.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id GROUP BY name ORDER BY name

-- name: select_tags_among
-- Every tag in use among some documents, with the number of those; {condition} is put in.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY name ORDER BY name

-- name: select_tags_of
-- A document's tags.
SELECT name FROM document_tags JOIN tags ON tags.id = tag_id WHERE document_id = ?

-- name: insert_tag
-- A tag, unless there is one of that name.
INSERT INTO tags (name) VALUES (?) ON CONFLICT DO NOTHING

-- name: tag_document
-- A document carries a tag.
INSERT INTO document_tags SELECT ?, id FROM tags WHERE name = ? ON CONFLICT DO NOTHING

-- name: untag_document
-- A document carries a tag no more.
DELETE FROM document_tags WHERE document_id = ? AND tag_id = (SELECT id FROM tags WHERE name = ?) RETURNING tag_id

-- name: clear_tags_of
-- A document carries no tags any more.
DELETE FROM document_tags WHERE document_id = ? RETURNING tag_id

-- name: delete_unused_tag
-- A tag, if no document carries it.
DELETE FROM tags WHERE id = ? AND NOT EXISTS (SELECT 1 FROM document_tags WHERE tag_id = tags.id)

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
INSERT INTO unneeded_files VALUES (?) ON CONFLICT DO NOTHING

-- name: take_unneeded_files
-- The files that were noted, which are not any more.
DELETE FROM unneeded_files RETURNING content_hash
