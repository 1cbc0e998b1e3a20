-- The full text as numbers, for the postings in memory: in one piece each, which is read faster than rows.

-- name: highest_id
-- The highest id of a chunk or document.
SELECT max(COALESCE((SELECT max(id) FROM chunks), 0), COALESCE((SELECT max(id) FROM documents), 0))

-- name: select_lengths
-- Every chunk's id, how many tokens each of its columns has, and in how many bytes that is written.
SELECT
  unhex(group_concat(printf('%08x', id), '')),
  unhex(group_concat(hex(sz), '')),
  unhex(group_concat(printf('%08x', octet_length(sz)), ''))
FROM chunks_fts_docsize

-- name: select_lengths_of
-- Those of some chunks, by an array of ids.
SELECT id, sz FROM chunks_fts_docsize WHERE id IN carray(?) ORDER BY id

-- name: select_document_ids
-- Every chunk's id and its document's; an index has both.
SELECT unhex(group_concat(printf('%08x%08x', id, document_id), '')) FROM chunks

-- name: select_texts
-- Chunks with their documents, and text and header as they were indexed, for an array of ids. Version 2 may have named
-- the text otherwise.
SELECT chunks.id, document_id, chunks_fts.*
FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.id
WHERE chunks.id IN carray(?) ORDER BY chunks.id

-- name: select_text
-- A chunk's text and header as they were indexed.
SELECT * FROM chunks_fts WHERE rowid = ?

-- name: select_token
-- Where a token stands: the chunk's id twice, one more for a header.
SELECT unhex(group_concat(printf('%08x', doc * 2 + (col = 'header')), '')) FROM temp.instances WHERE term = ?

-- name: select_phrase
-- Where a phrase stands: the chunk's id, and its score there times two to the 57th. The limit keeps SQLite from
-- asking for the score where FTS5 does not know it.
SELECT unhex(group_concat(printf('%08x%016x', id, CAST(score * -144115188075855872.0 AS INTEGER)), ''))
FROM (
  SELECT rowid AS id, bm25(chunks_fts, 1.0, 2.0) AS score
  FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid LIMIT -1
)

-- name: select_known
-- Those of a JSON array of tokens that stand somewhere.
SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM temp.instances WHERE term = value)

-- name: select_terms
-- The tokens behind one, with spaces between them: none has one.
SELECT group_concat(term, ' ') FROM (SELECT term FROM temp.terms WHERE term > ? ORDER BY term LIMIT ?)

-- name: select_beginning
-- Tokens from one to before another.
SELECT term FROM temp.terms WHERE term >= ? AND term < ? LIMIT ?

-- name: select_sources
-- Headers and texts as they were written, for a JSON array of ids.
SELECT header || ' ' || text FROM source_texts WHERE id IN (SELECT value FROM json_each(?))
