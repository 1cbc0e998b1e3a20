-- The full text: terms, and where they stand.

-- name: count_terms
-- Terms stand in so many more chunks; those that there are.
UPDATE terms SET chunks = terms.chunks + more.chunks
FROM unnest(%s::text[], %s::bigint[]) AS more (term, chunks) WHERE terms.term = more.term
RETURNING terms.term, terms.id

-- name: insert_terms
-- Terms that stand in so many chunks, which are new.
INSERT INTO terms (term, chunks) SELECT * FROM unnest(%s::text[], %s::bigint[])
ON CONFLICT (term) DO UPDATE SET chunks = terms.chunks + excluded.chunks
RETURNING term, id

-- name: copy_postings
-- Where terms stand.
COPY postings (chunk_id, document_id, term_id, count, length, places) FROM STDIN

-- name: count_chunks
-- There are so many chunks and words more.
UPDATE statistics SET chunks = chunks + %s, words = words + %s

-- name: discount_chunks
-- A document's chunks do not count any more.
UPDATE statistics SET chunks = statistics.chunks - gone.chunks, words = statistics.words - gone.words
FROM (SELECT count(*) AS chunks, COALESCE(sum(length), 0) AS words FROM chunks WHERE document_id = %s) AS gone

-- name: delete_postings
-- A document's words stand there no more; the terms that stand nowhere now.
WITH gone AS (DELETE FROM postings WHERE document_id = %s RETURNING term_id),
  fewer AS (SELECT term_id, count(*) AS chunks FROM gone GROUP BY term_id),
  counted AS (
    UPDATE terms SET chunks = terms.chunks - fewer.chunks FROM fewer WHERE terms.id = fewer.term_id
    RETURNING terms.id, terms.chunks
  )
SELECT id FROM counted WHERE chunks <= 0

-- name: delete_terms
-- Terms go.
DELETE FROM terms WHERE id = ANY(%s)

-- name: select_statistics
-- How many chunks there are, and how many words they have.
SELECT chunks, words FROM statistics

-- name: select_terms
-- Terms, and in how many chunks each stands.
SELECT term, id, chunks FROM terms WHERE term = ANY(%s)

-- name: select_begun
-- Terms from one to before another, and in how many chunks each stands.
SELECT term, id, chunks FROM terms WHERE term >= %s AND term < %s LIMIT %s

-- name: select_phrase
-- The chunks in which terms follow each other, and how often, in a header twice; the followed says which others must.
SELECT chunk_id, document_id, length, sum(1 + (place & 1)) AS count
FROM postings CROSS JOIN unnest(places) AS place
WHERE term_id = ANY(%s) {followed}
GROUP BY chunk_id, document_id, length ORDER BY chunk_id

-- name: is_followed
-- That one of some terms stands so far from a place, in the same column.
AND EXISTS (
  SELECT 1 FROM postings AS other
  WHERE other.term_id = ANY(%s) AND other.chunk_id = postings.chunk_id AND other.document_id = postings.document_id
    AND other.places @> ARRAY[place + %s]
)

-- name: select_best
-- The chunks that match best, by BM25: terms by their ids, phrases by their chunks, each with its weight; the among is put in,
-- and what a length counts for. Every number is a double: a numeric among them takes as long as all the rest.
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
-- How often terms stand in chunks.
SELECT term_id, chunk_id, count FROM postings WHERE term_id = ANY(%s) AND chunk_id = ANY(%s) ORDER BY chunk_id

-- name: select_lengths
-- Chunks by ascending id, with their documents and lengths.
SELECT id, document_id, length FROM chunks WHERE id = ANY(%s) ORDER BY id

-- name: select_some_with
-- How many chunks a term stands in, of some or all, and the first of them; the among is put in.
SELECT count(*), (array_agg(chunk_id ORDER BY chunk_id))[:%s] FROM (
  SELECT chunk_id, document_id FROM postings
  WHERE term_id = %s AND (%s::bigint[] IS NULL OR chunk_id = ANY(%s::bigint[]))
) AS found {among}

-- name: select_first_with
-- The first chunks in which a term stands.
SELECT chunk_id FROM postings WHERE term_id = %s ORDER BY chunk_id LIMIT %s

-- name: select_sources
-- Headers and texts of chunks as they were written.
SELECT COALESCE(header, '') || ' ' || text
FROM chunks LEFT JOIN sections ON sections.id = section_id AND sections.document_id = chunks.document_id
WHERE chunks.id = ANY(%s)

-- name: select_chunk_ids
-- The chunks of some documents, by ascending id; the condition is put in.
SELECT id FROM chunks {among} ORDER BY id
