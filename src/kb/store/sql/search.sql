-- Search. The module document_query.py composes filters.

-- name: select_hits
-- Select chunks with the fields of their documents that a search result shows.
SELECT
  chunks.id AS chunk_id, chunk_index AS "index", documents.id AS document_id, title, source_path, doc_type, text, line_start,
  line_end, char_start, char_end, sections.heading, page, $tags AS tags, created_at, updated_at, date, language,
  changed_by, changed_with, $optional_fields
FROM chunks JOIN documents ON documents.id = chunks.document_id
LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id $in_ids

-- name: select_written_texts
-- Select the title, the headings and the text of chunks.
SELECT chunks.id, title, heading, text
FROM chunks JOIN documents ON documents.id = chunks.document_id
LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id $in_ids

-- name: select_languages
-- Select the languages of documents, each by a look-up after the one before.
WITH RECURSIVE found (language) AS (
  SELECT min(language) FROM documents
  UNION ALL
  SELECT (SELECT min(language) FROM documents WHERE language > found.language) FROM found WHERE found.language IS NOT NULL
)
SELECT language FROM found WHERE language IS NOT NULL

-- name: select_documents_of
-- Select the documents of chunks.
SELECT id, document_id FROM chunks WHERE id $in_ids
