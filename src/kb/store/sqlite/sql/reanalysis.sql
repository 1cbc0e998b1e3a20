-- Documents that an older kb indexed, and that this one indexes again.

-- name: is_due
-- Whether some documents are left.
SELECT EXISTS (SELECT 1 FROM reanalysis)

-- name: select_next
-- Select the next documents, with their languages.
SELECT id, content_hash, language FROM documents WHERE id > (SELECT document_id FROM reanalysis) ORDER BY id LIMIT ?

-- name: set_done
-- Record the last document that is done.
UPDATE reanalysis SET document_id = ?

-- name: finish
-- Record that all documents are done.
DELETE FROM reanalysis

-- name: select_sections
-- Select a document's sections, with their indexed forms.
SELECT id, header, segmented, variants FROM sections WHERE document_id = ?

-- name: select_chunks
-- Select a document's chunks, with their indexed forms.
SELECT id, text, segmented, variants FROM chunks WHERE document_id = ?

-- name: unindex_sections
-- Remove the words of chunks in some sections from the index, by an array of ids.
INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
SELECT 'delete', chunk_texts.id, chunk_texts.text, chunk_texts.header
FROM chunks JOIN chunk_texts ON chunk_texts.id = chunks.id WHERE section_id IN carray(?)

-- name: update_section
-- Set the indexed form of a section. This fires no trigger.
UPDATE sections SET segmented = ?, variants = ? WHERE id = ?

-- name: index_sections
-- Add the words of chunks in some sections to the index.
INSERT INTO chunks_fts (rowid, text, header)
SELECT chunk_texts.id, chunk_texts.text, chunk_texts.header
FROM chunks JOIN chunk_texts ON chunk_texts.id = chunks.id WHERE section_id IN carray(?)

-- name: update_language
-- Set the language of a document, if it still has this content.
UPDATE documents SET language = ? WHERE id = ? AND content_hash = ?

-- name: update_chunk
-- Set the indexed form of a chunk, if it still has this text. A trigger indexes its words.
UPDATE chunks SET segmented = ?, variants = ? WHERE id = ? AND text = ?

-- name: has_section
-- Whether a section exists with this header.
SELECT EXISTS (SELECT 1 FROM sections WHERE id = ? AND header = ?)

-- name: select_under
-- Select the chunks in some sections.
SELECT id FROM chunks WHERE section_id IN carray(?)
