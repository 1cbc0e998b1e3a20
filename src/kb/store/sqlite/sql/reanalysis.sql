-- Documents that an older kb indexed are indexed again.

-- name: is_due
-- Whether some are left.
SELECT EXISTS (SELECT 1 FROM reanalysis)

-- name: count_done
-- How many documents are done, and how many there are.
SELECT count(*) FILTER (WHERE id <= COALESCE((SELECT document_id FROM reanalysis), 9223372036854775807)), count(*)
FROM documents

-- name: select_next
-- The next documents, with their languages.
SELECT id, content_hash, language FROM documents WHERE id > (SELECT document_id FROM reanalysis) ORDER BY id LIMIT ?

-- name: set_done
-- So far it is done.
UPDATE reanalysis SET document_id = ?

-- name: finish
-- All is done.
DELETE FROM reanalysis

-- name: select_sections
-- What chunks of a document stand under, and how that is indexed.
SELECT id, header, segmented, variants FROM sections WHERE document_id = ?

-- name: select_chunks
-- A document's chunks, and how they are indexed.
SELECT id, text, segmented, variants FROM chunks WHERE document_id = ?

-- name: unindex_sections
-- The words of the chunks under some sections, by an array of ids, leave the index.
INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
SELECT 'delete', chunk_texts.id, chunk_texts.text, chunk_texts.header
FROM chunks JOIN chunk_texts ON chunk_texts.id = chunks.id WHERE section_id IN carray(?)

-- name: update_section
-- How a section is indexed; no trigger follows.
UPDATE sections SET segmented = ?, variants = ? WHERE id = ?

-- name: index_sections
-- The words of the chunks under some sections come back.
INSERT INTO chunks_fts (rowid, text, header)
SELECT chunk_texts.id, chunk_texts.text, chunk_texts.header
FROM chunks JOIN chunk_texts ON chunk_texts.id = chunks.id WHERE section_id IN carray(?)

-- name: update_language
-- In which language a document is that holds this.
UPDATE documents SET language = ? WHERE id = ? AND content_hash = ?

-- name: update_chunk
-- How a chunk is indexed that says this; a trigger writes its words.
UPDATE chunks SET segmented = ?, variants = ? WHERE id = ? AND text = ?

-- name: has_section
-- Whether a section is there and says this.
SELECT EXISTS (SELECT 1 FROM sections WHERE id = ? AND header = ?)

-- name: select_under
-- The chunks under some sections.
SELECT id FROM chunks WHERE section_id IN carray(?)
