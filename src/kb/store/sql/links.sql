-- The links in documents.

-- name: delete_links
-- Delete the links in documents.
DELETE FROM links WHERE document_id $in_ids

-- name: delete_link_names
-- Delete the keys that find documents.
DELETE FROM link_names WHERE document_id $in_ids

-- name: select_types
-- Select the types of documents.
SELECT id, doc_type FROM documents WHERE id $in_ids

-- name: select_texts
-- Select the texts of a document's chunks, in order.
SELECT text FROM chunks WHERE document_id = :id ORDER BY chunk_index

-- name: select_message_ids
-- Select the message ids of mails.
SELECT documents.id, ids FROM documents JOIN message_ids ON message_ids.content_hash = documents.content_hash
WHERE documents.id $in_ids

-- name: select_ids_of_content
-- Select the message ids of a mail by its content.
SELECT ids FROM message_ids WHERE content_hash = :hash

-- name: keep_message_ids
-- Keep the message ids of a mail.
INSERT INTO message_ids (content_hash, ids) VALUES (:hash, :ids) ON CONFLICT (content_hash) DO UPDATE SET ids = :ids

-- name: forget_message_ids
-- Forget the message ids of a mail.
DELETE FROM message_ids WHERE content_hash = :hash

-- name: insert_links
-- Insert links. The spots are texts, because numbers in JSON may lose digits.
INSERT INTO links (document_id, number, target, link_key, spot, place)
SELECT CAST(value ->> 0 AS bigint), CAST(value ->> 1 AS integer), value ->> 2, value ->> 3, CAST(value ->> 4 AS bigint),
  CAST(value ->> 5 AS integer)
FROM $values

-- name: insert_link_names
-- Insert keys that find documents.
INSERT INTO link_names (link_key, document_id, key_rank)
SELECT value ->> 0, CAST(value ->> 1 AS bigint), CAST(value ->> 2 AS integer) FROM $values

-- name: select_links
-- Select the links in a document, in order.
SELECT target, link_key, place FROM links WHERE document_id = :id ORDER BY number

-- name: is_linked
-- Whether a link has one of some keys.
SELECT EXISTS (SELECT 1 FROM links WHERE link_key IN (SELECT wanted_key FROM ($keys) AS wanted))

-- name: select_roots
-- Select the synced folders.
SELECT prefix FROM folders

-- name: select_candidates
-- Select the documents that some keys find, among the documents of a condition.
SELECT link_key, documents.id, title, source_path, key_rank
FROM ($keys) AS wanted $then_join link_names ON link_names.link_key = wanted.wanted_key COLLATE $bytewise
$then_join documents ON documents.id = link_names.document_id WHERE {condition}

-- name: select_spots
-- Select the spots of links to the names of a document in other documents, each with one of these links and its path.
-- It goes from spot to spot in the index, because a popular name has far more links than spots.
WITH RECURSIVE spots (link_key, spot) AS (
  SELECT link_key, (SELECT min(spot) FROM links WHERE links.link_key = link_names.link_key)
  FROM link_names WHERE document_id = ?
  UNION ALL
  SELECT link_key, (SELECT min(spot) FROM links WHERE links.link_key = spots.link_key AND links.spot > spots.spot)
  FROM spots WHERE spot IS NOT NULL
)
SELECT target, links.link_key, links.spot, source_path
FROM spots $then_join links ON links.link_key = spots.link_key AND links.spot = spots.spot AND links.document_id = (
  SELECT min(links.document_id) FROM links
  WHERE links.link_key = spots.link_key AND links.spot = spots.spot AND links.document_id <> ? {within}
)
$then_join documents ON documents.id = links.document_id

-- name: select_linking
-- Select the first link in each of some documents, among links at some spots in other documents, with its chunk.
SELECT documents.id, title, place - char_start, text
FROM (SELECT document_id, min(number) AS number
  FROM (SELECT value ->> 0 AS wanted_key, CAST(value ->> 1 AS bigint) AS wanted_spot FROM $values) AS wanted $then_join links
    ON links.link_key = wanted.wanted_key COLLATE $bytewise AND links.spot = wanted.wanted_spot
  WHERE document_id <> ? {within} GROUP BY document_id ORDER BY document_id LIMIT ?) AS found
$then_join links ON links.document_id = found.document_id AND links.number = found.number
$then_join documents ON documents.id = found.document_id
LEFT JOIN chunks ON chunks.document_id = found.document_id AND char_start <= place AND char_end > place
ORDER BY documents.id

-- name: count_linking
-- Count the documents with links at some spots.
SELECT count(*) FROM (SELECT document_id
  FROM (SELECT value ->> 0 AS wanted_key, CAST(value ->> 1 AS bigint) AS wanted_spot FROM $values) AS wanted $then_join links
    ON links.link_key = wanted.wanted_key COLLATE $bytewise AND links.spot = wanted.wanted_spot
  WHERE document_id <> ? {within} GROUP BY document_id) AS linking

-- name: select_before
-- Select the lowest id of the documents whose links kb has read since an upgrade, until it has read all of them.
SELECT before FROM links_backfill

-- name: set_before
-- Note the lowest id of these documents.
UPDATE links_backfill SET before = :before

-- name: finish
-- Note that kb has read the links of all documents.
DELETE FROM links_backfill
