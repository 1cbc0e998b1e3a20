-- The full text: terms and their positions.

-- name: count_terms
-- Add to the number of chunks of terms, and return the terms that exist.
UPDATE terms SET chunks = terms.chunks + more.chunks
FROM unnest(%s::text[], %s::bigint[]) AS more (term, chunks) WHERE terms.term = more.term
RETURNING terms.term, terms.id

-- name: insert_terms
-- Insert new terms with their number of chunks.
INSERT INTO terms (term, chunks) SELECT * FROM unnest(%s::text[], %s::bigint[])
ON CONFLICT (term) DO UPDATE SET chunks = terms.chunks + excluded.chunks
RETURNING term, id

-- name: copy_postings
-- Insert the positions of terms.
COPY postings (chunk_id, document_id, term_id, count, length, places) FROM STDIN

-- name: count_chunks
-- Add to the number of chunks and words.
UPDATE statistics SET chunks = chunks + %s, words = words + %s

-- name: discount_chunks
-- Subtract chunks of a document and their words.
UPDATE statistics SET chunks = statistics.chunks - gone.chunks, words = statistics.words - gone.words
FROM (
  SELECT count(*) AS chunks, COALESCE(sum(length), 0) AS words FROM chunks WHERE document_id = %s AND id = ANY(%s)
) AS gone

-- name: delete_postings
-- Delete the postings of chunks of a document, and return the terms that no chunk contains any more.
WITH gone AS (DELETE FROM postings WHERE document_id = %s AND chunk_id = ANY(%s) RETURNING term_id),
  fewer AS (SELECT term_id, count(*) AS chunks FROM gone GROUP BY term_id),
  counted AS (
    UPDATE terms SET chunks = terms.chunks - fewer.chunks FROM fewer WHERE terms.id = fewer.term_id
    RETURNING terms.id, terms.chunks
  )
SELECT id FROM counted WHERE chunks <= 0

-- name: delete_terms
-- Delete terms.
DELETE FROM terms WHERE id = ANY(%s)

-- name: select_statistics
-- Select the number of chunks and words.
SELECT chunks, words FROM statistics

-- name: select_terms
-- Select terms with their number of chunks.
SELECT term, id, chunks FROM terms WHERE term = ANY(%s)

-- name: select_begun
-- Select the terms in a range with their number of chunks. The end is excluded.
SELECT term, id, chunks FROM terms WHERE term >= %s AND term < %s LIMIT %s

-- name: select_compounds
-- Select the terms in a range that end in one way or begin in one of some ways. The end of the range is excluded.
SELECT term FROM terms
WHERE term >= %s AND term < %s AND (term LIKE %s OR EXISTS (SELECT 1 FROM unnest(%s::text[]) AS begun WHERE starts_with(term, begun)))

-- name: select_phrase
-- Select the chunks in which terms follow each other, with their number, twice in a header. The followed names the
-- other terms.
SELECT chunk_id, document_id, length, sum(1 + (place & 1)) AS count
FROM postings CROSS JOIN unnest(places) AS place
WHERE term_id = ANY(%s) {followed}
GROUP BY chunk_id, document_id, length ORDER BY chunk_id

-- name: is_followed
-- One of some terms occurs at a distance from a position, in the same column.
AND EXISTS (
  SELECT 1 FROM postings AS other
  WHERE other.term_id = ANY(%s) AND other.chunk_id = postings.chunk_id AND other.document_id = postings.document_id
    AND other.places @> ARRAY[place + %s]
)

-- name: select_best
-- Select the chunks with the best BM25: terms by their ids and phrases by their chunks, each with its weight. The among
-- and the factors of length are filled in. Every number is a double, because one numeric would double the time.
WITH found AS (
  SELECT chunk_id, document_id, length, count, weight
  FROM unnest(%s::bigint[], %s::double precision[]) AS word (id, weight) JOIN postings ON term_id = word.id
  UNION ALL
  SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::int[], %s::double precision[])
)
SELECT chunk_id FROM found {among}
GROUP BY chunk_id
ORDER BY sum(weight * count / (count + {least}::double precision + {slope}::double precision * length)) DESC, chunk_id
LIMIT %s

-- name: select_counts
-- Select the number of occurrences of terms in chunks.
SELECT term_id, chunk_id, count FROM postings WHERE term_id = ANY(%s) AND chunk_id = ANY(%s) ORDER BY chunk_id

-- name: select_lengths
-- Select chunks by ascending id, with their documents and lengths.
SELECT id, document_id, length FROM chunks WHERE id = ANY(%s) ORDER BY id

-- name: select_some_with
-- Count the chunks with a term, among some or all chunks, and select the first of them. The among is filled in.
SELECT count(*), (array_agg(chunk_id ORDER BY chunk_id))[:%s] FROM (
  SELECT chunk_id, document_id FROM postings
  WHERE term_id = %s AND (%s::bigint[] IS NULL OR chunk_id = ANY(%s::bigint[]))
) AS found {among}

-- name: select_first_with
-- Select the first chunks with a term.
SELECT chunk_id FROM postings WHERE term_id = %s ORDER BY chunk_id LIMIT %s

-- name: select_sources
-- Select headers and texts of chunks as written.
SELECT COALESCE(header, '') || ' ' || text
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id = ANY(%s)

-- name: select_chunk_ids
-- Select the chunks of some documents, by ascending id. The condition is filled in.
SELECT id FROM chunks {among} ORDER BY id

-- name: select_backfilled
-- Select the last document that an upgrade has indexed again; none if all are.
SELECT document_id FROM words_backfill

-- name: select_next_documents
-- Select the next documents with their languages.
SELECT id, language FROM documents WHERE id > %s ORDER BY id LIMIT %s

-- name: select_texts
-- Select the chunks of a document with their texts and headers.
SELECT chunks.id, text, COALESCE(header, '') FROM chunks
LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.document_id = %s ORDER BY chunks.id

-- name: set_lengths
-- Set the numbers of words of chunks of a document.
UPDATE chunks SET length = new.length FROM unnest(%s::bigint[], %s::int[]) AS new (id, length)
WHERE chunks.document_id = %s AND chunks.id = new.id

-- name: note_backfilled
-- Record the last document that is indexed again.
UPDATE words_backfill SET document_id = %s

-- name: finish_backfill
-- Record that all documents are indexed again.
DELETE FROM words_backfill
