-- The full text as numbers, for the postings in memory. Each answer is one value, which is faster to read than rows.

-- name: highest_id
-- Select the highest id of a chunk or document.
SELECT max(COALESCE((SELECT max(id) FROM chunks), 0), COALESCE((SELECT max(id) FROM documents), 0))

-- name: select_lengths
-- Select every chunk's id, the number of tokens in each of its columns, and the bytes of this number.
SELECT
  unhex(group_concat(printf('%08x', id), '')),
  unhex(group_concat(hex(sz), '')),
  unhex(group_concat(printf('%08x', octet_length(sz)), ''))
FROM chunks_fts_docsize

-- name: select_lengths_of
-- Select the number of tokens of some chunks, by an array of ids.
SELECT id, sz FROM chunks_fts_docsize WHERE id IN carray(?) ORDER BY id

-- name: select_document_ids
-- Select every chunk's id and its document's id. One index has both.
SELECT unhex(group_concat(printf('%08x%08x', id, document_id), '')) FROM chunks

-- name: select_texts
-- Select chunks with their documents, and with text and header as indexed, for an array of ids. In version 2, the text
-- may have another name.
SELECT chunks.id, document_id, chunks_fts.*
FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.id
WHERE chunks.id IN carray(?) ORDER BY chunks.id

-- name: select_text
-- Select a chunk's text and header as indexed.
SELECT * FROM chunks_fts WHERE rowid = ?

-- name: select_token
-- Select the positions of a token as twice the chunk's id, plus one in a header.
SELECT unhex(group_concat(printf('%08x', doc * 2 + (col = 'header')), '')) FROM temp.instances WHERE term = ?

-- name: select_phrase
-- Select the chunks with a phrase, each with its score times two to the 57th. The limit keeps SQLite from computing the
-- score where FTS5 cannot.
SELECT unhex(group_concat(printf('%08x%016x', id, CAST(score * -144115188075855872.0 AS INTEGER)), ''))
FROM (
  SELECT rowid AS id, bm25(chunks_fts, 1.0, 2.0) AS score
  FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid LIMIT -1
)

-- name: select_known
-- Select the tokens of a JSON array that occur in the index.
SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM temp.instances WHERE term = value)

-- name: select_terms
-- Select the tokens after a token, separated by blanks, because no token contains one.
SELECT group_concat(term, ' ') FROM (SELECT term FROM temp.terms WHERE term > ? ORDER BY term LIMIT ?)

-- name: select_beginning
-- Select the tokens in a range. The end is excluded.
SELECT term FROM temp.terms WHERE term >= ? AND term < ? LIMIT ?

-- name: select_sources
-- Select headers and texts as written, for a JSON array of ids.
SELECT header || ' ' || text FROM source_texts WHERE id IN (SELECT value FROM json_each(?))
