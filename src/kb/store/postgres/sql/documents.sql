-- Documents with their tags and chunks.

-- name: take_chunk_ids
-- Reserve ids of chunks above every id that was ever used.
SELECT nextval('chunk_ids') FROM generate_series(1, :count)

-- name: insert_document
-- Insert a document, and return its id.
INSERT INTO documents (
  id, title, source_path, doc_type, content_hash, date, own_day, own_tags, part_of, uploaded_as, title_given, created_at,
  changed_by, changed_with, changed_why, $optional_fields, replaces, omitted, language, operation
) VALUES (
  nextval('document_ids'), :title, :source_path, :doc_type, :content_hash, :date, :own_day, :own_tags,
  :part_of, :filename, :title_given, :now, :by, :client, :why, $optional_values, :replaces, :omitted,
  :language,
  (SELECT id FROM operations WHERE key = :operation_key)
) RETURNING id

-- name: update_document
-- Update a document. A file keeps its name if the new content came without one. The time of a change is never before
-- the time of the previous change, even if the clock is wrong.
UPDATE documents SET
  title = :title, doc_type = :doc_type, content_hash = :content_hash, date = :date, own_day = :own_day,
  own_tags = :own_tags, uploaded_as = COALESCE(:filename, uploaded_as), title_given = :title_given,
  $set_optional_fields, replaces = :replaces, omitted = :omitted, language = :language,
  updated_at = GREATEST(CAST(:now AS timestamptz), updated_at, created_at)
WHERE id = :id

-- name: insert_section
-- Insert a section of a document.
INSERT INTO sections (document_id, header, heading) VALUES (:document_id, :header, :heading) RETURNING id

-- name: insert_chunk
-- Insert a chunk.
INSERT INTO chunks (
  id, document_id, chunk_index, section_id, text, page, line_start, line_end, char_start, char_end, length
) VALUES (
  :id, :document_id, :index, :section_id, :text, :page, :line_start, :line_end, :char_start,
  :char_end, :length
)

-- name: select_empty
-- Select the chunks of a document whose vector is all zeros, because it is not made yet. The name of the table in use is
-- filled in.
SELECT chunks.id FROM chunks JOIN {vectors} AS vectors
ON vectors.chunk_id = chunks.id AND vectors.document_id = chunks.document_id
WHERE chunks.document_id = :id AND vector_norm(embedding) = 0

-- name: set_vector
-- Set a chunk's vector. The name of the table in use is filled in.
UPDATE {vectors} SET embedding = CAST(:vector AS vector) WHERE chunk_id = :id AND document_id = :document_id

-- name: insert_vector
-- Insert a chunk's vector. The name of the table in use is filled in.
INSERT INTO {vectors} (chunk_id, document_id, embedding) VALUES (:id, :document_id, CAST(:vector AS vector))

-- name: delete_chunks
-- Delete chunks of a document with their vectors.
DELETE FROM chunks WHERE document_id = :id AND id $in_ids

-- name: count_chunks
-- Count all chunks.
SELECT chunks FROM statistics

-- name: select_size
-- Select the bytes of the database, without the files in it.
SELECT pg_database_size(current_database()) - pg_total_relation_size('blob_blocks')

-- name: select_tags
-- Select every tag in use with the number of its documents.
SELECT tag, count(*) FROM document_tags GROUP BY tag ORDER BY tag

-- name: select_tags_among
-- Select every tag of the documents that meet the condition, with the number of these documents.
SELECT tag, count(*) FROM document_tags
WHERE document_id IN (SELECT id FROM documents WHERE {condition}) GROUP BY tag ORDER BY tag

-- name: select_folders
-- Select the folders right below a beginning of paths with the number of documents in each; a condition is put in.
SELECT CASE WHEN strpos(rest, '/') > 0 THEN split_part(rest, '/', 1) END AS folder, count(*)
FROM (SELECT substr(source_path, {start}) AS rest FROM documents WHERE {condition} AND part_of IS NULL) AS paths
GROUP BY folder HAVING CASE WHEN strpos(rest, '/') > 0 THEN split_part(rest, '/', 1) END IS NOT NULL ORDER BY folder LIMIT {most}

-- name: count_branches
-- How many documents have a tag of each branch, from pairs of a branch and a tag in it; a condition is put in.
SELECT pair.value ->> 0, count(DISTINCT document_id)
FROM json_array_elements(CAST(? AS json)) AS pair JOIN document_tags ON tag = pair.value ->> 1
{admitted_only} GROUP BY 1

-- name: select_tags_of
-- Select a document's tags.
SELECT tag FROM document_tags WHERE document_id = :id

-- name: tag_document
-- Add tags to a document.
INSERT INTO document_tags SELECT :id, unnest(CAST(:tags AS text[])) ON CONFLICT DO NOTHING

-- name: untag_document
-- Remove tags from a document.
DELETE FROM document_tags WHERE document_id = :id AND tag = ANY(CAST(:tags AS text[]))
