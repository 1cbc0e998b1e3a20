-- Documents with their tags and chunks.

-- name: take_document_ids
-- Reserve ids of documents above every id that was ever used, and return the last one.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM documents)) + ? WHERE name = 'documents' RETURNING id

-- name: take_chunk_ids
-- Reserve ids of chunks above every id that was ever used, and return the last one.
UPDATE last_ids SET id = max(id, (SELECT COALESCE(max(id), 0) FROM chunks)) + ? WHERE name = 'chunks' RETURNING id

-- name: insert_document
-- Insert a document.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, date, own_tags, part_of, uploaded_as, title_given, created_at,
  changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
) VALUES (
  :id, :title, :source_path, :doc_type, :content_hash, :date, :own_tags, :part_of, :filename, :title_given, :now,
  :by, :client, :why, $optional_values, :replaces, :omitted, :language,
  (SELECT id FROM operations WHERE key = :operation_key)
)

-- name: update_document
-- Update a document. A file keeps its name if the new content came without one. The time of a change is never before
-- the time of the previous change, even if the clock is wrong.
UPDATE documents SET
  title = :title, doc_type = :doc_type, content_hash = :content_hash, date = :date, own_tags = :own_tags,
  uploaded_as = COALESCE(:filename, uploaded_as), title_given = :title_given, $set_optional_fields, replaces = :replaces,
  omitted = :omitted, language = :language,
  updated_at = max(:now, COALESCE(updated_at, created_at))
WHERE id = :id

-- name: insert_chunk
-- Insert a chunk. Triggers index its words, so its section must exist.
INSERT INTO chunks (
  id, document_id, chunk_index, section_id, text, page, line_start, line_end, char_start, char_end, segmented,
  variants
) VALUES (
  :id, :document_id, :index, :section_id, :text, :page, :line_start, :line_end, :char_start, :char_end, :segmented,
  :variants
)

-- name: insert_section
-- Insert a section of a document.
INSERT INTO sections (document_id, header, heading, segmented, variants) VALUES (?, ?, ?, ?, ?) RETURNING id

-- name: delete_chunks
-- Delete chunks. Triggers remove their words from the index, so their sections must still exist.
DELETE FROM chunks WHERE id $in_ids

-- name: scatter
-- Note that the chunks of a document do not have ascending ids without gaps.
INSERT INTO scattered_documents VALUES (:id) ON CONFLICT DO NOTHING

-- name: gather
-- Forget that.
DELETE FROM scattered_documents WHERE document_id = :id

-- name: count_chunks
-- Count all chunks.
SELECT count(*) FROM chunks

-- name: select_tags
-- Select every tag in use with the number of its documents.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id GROUP BY name ORDER BY name

-- name: select_tags_among
-- Select every tag of the documents that meet the condition, with the number of these documents.
SELECT name, count(*) FROM tags JOIN document_tags ON tag_id = tags.id
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY name ORDER BY name

-- name: select_folders
-- Select the folders right below a beginning of paths with the number of documents in each; a condition is put in.
SELECT CASE WHEN instr(rest, '/') THEN substr(rest, 1, instr(rest, '/') - 1) END AS folder, count(*)
FROM (SELECT substr(source_path, {start}) AS rest FROM documents WHERE {condition} AND part_of IS NULL) AS paths
GROUP BY folder HAVING CASE WHEN instr(rest, '/') THEN substr(rest, 1, instr(rest, '/') - 1) END IS NOT NULL ORDER BY folder LIMIT {most}

-- name: count_branches
-- How many documents have a tag of each branch, from pairs of a branch and a tag in it; a condition is put in.
SELECT pair.value ->> 0, count(DISTINCT document_id)
FROM json_each(?) AS pair CROSS JOIN tags ON name = pair.value ->> 1 CROSS JOIN document_tags ON tag_id = tags.id
{admitted_only} GROUP BY 1

-- name: select_tags_of
-- Select a document's tags.
SELECT name FROM document_tags JOIN tags ON tags.id = tag_id WHERE document_id = :id

-- name: insert_tag
-- Insert a tag, unless it exists.
INSERT INTO tags (name) VALUES (:name) ON CONFLICT DO NOTHING

-- name: tag_document
-- Add a tag to a document.
INSERT INTO document_tags SELECT :id, id FROM tags WHERE name = :name ON CONFLICT DO NOTHING

-- name: untag_document
-- Remove a tag from a document.
DELETE FROM document_tags WHERE document_id = :id AND tag_id = (SELECT id FROM tags WHERE name = :name) RETURNING tag_id

-- name: clear_tags_of
-- Remove all tags from a document.
DELETE FROM document_tags WHERE document_id = :id RETURNING tag_id

-- name: delete_unused_tag
-- Delete a tag that no document has.
DELETE FROM tags WHERE id = :id AND NOT EXISTS (SELECT 1 FROM document_tags WHERE tag_id = tags.id)

-- name: select_users_of_file
-- Select the documents, earlier versions and queued jobs that need the file with a hash, as texts.
SELECT 'document ' || id || ', ' || coalesce(source_path, title) FROM documents
WHERE content_hash = :hash AND doc_type <> 'note'
UNION ALL
SELECT 'version ' || number || ' of document ' || document_id || ', ' || coalesce(source_path, title) FROM versions
WHERE content_hash = :hash AND doc_type <> 'note'
UNION ALL
SELECT 'queued job ' || id FROM jobs WHERE content_hash = :hash AND staged IS NOT NULL
