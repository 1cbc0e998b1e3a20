-- Documents with their tags and chunks.

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
  changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
) VALUES (
  :id, :title, :source_path, :doc_type, :content_hash, :date, :own_tags, :part_of, :filename, :title_given, :now,
  :by, :client, :why, $optional_values, :replaces, :omitted, :language,
  (SELECT id FROM operations WHERE key = :operation_key)
)

-- name: update_document
-- What a document holds; a file keeps its name if the new content came without one. No change is older than the one before,
-- whatever the clock says.
UPDATE documents SET
  title = :title, doc_type = :doc_type, content_hash = :content_hash, date = :date, own_tags = :own_tags,
  uploaded_as = COALESCE(:filename, uploaded_as), title_given = :title_given, $set_optional_fields, replaces = :replaces,
  omitted = :omitted, language = :language,
  updated_at = max(:now, COALESCE(updated_at, created_at))
WHERE id = :id

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
SELECT id FROM chunks WHERE document_id = :id

-- name: delete_chunks
-- A document's chunks; triggers remove their full text, for which their sections must still be there.
DELETE FROM chunks WHERE document_id = :id

-- name: delete_sections
-- A document's sections, once nothing stands under them.
DELETE FROM sections WHERE document_id = :id

-- name: count_chunks
-- How many chunks there are.
SELECT count(*) FROM chunks

-- name: select_tags
-- Every tag in use with the number of its documents.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id GROUP BY name ORDER BY name

-- name: select_tags_among
-- Every tag in use among some documents, with the number of those; {condition} is put in.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY name ORDER BY name

-- name: count_branches
-- How many documents have a tag of each branch, from pairs of a branch and a tag in it; {condition} is put in.
SELECT pair.value ->> 0, count(DISTINCT document_id)
FROM json_each(?) AS pair CROSS JOIN tags ON name = pair.value ->> 1 JOIN document_tags ON tag_id = tags.id
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY 1

-- name: select_tags_of
-- A document's tags.
SELECT name FROM document_tags JOIN tags ON tags.id = tag_id WHERE document_id = :id

-- name: insert_tag
-- A tag, unless there is one of that name.
INSERT INTO tags (name) VALUES (:name) ON CONFLICT DO NOTHING

-- name: tag_document
-- A document carries a tag.
INSERT INTO document_tags SELECT :id, id FROM tags WHERE name = :name ON CONFLICT DO NOTHING

-- name: untag_document
-- A document carries a tag no more.
DELETE FROM document_tags WHERE document_id = :id AND tag_id = (SELECT id FROM tags WHERE name = :name) RETURNING tag_id

-- name: clear_tags_of
-- A document carries no tags any more.
DELETE FROM document_tags WHERE document_id = :id RETURNING tag_id

-- name: delete_unused_tag
-- A tag, if no document carries it.
DELETE FROM tags WHERE id = :id AND NOT EXISTS (SELECT 1 FROM document_tags WHERE tag_id = tags.id)
