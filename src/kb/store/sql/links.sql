-- The links in documents.

-- name: delete_links
-- Delete the links in documents.
DELETE FROM links WHERE document_id $in_ids

-- name: delete_link_names
-- Delete the keys that find documents.
DELETE FROM link_names WHERE document_id $in_ids

-- name: insert_link
-- Insert a link.
INSERT INTO links (document_id, number, target, link_key, place) VALUES (:id, :number, :target, :key, :place)

-- name: insert_link_name
-- Insert a key that finds a document.
INSERT INTO link_names (link_key, document_id, key_rank) VALUES (:key, :id, :rank)

-- name: select_links
-- Select the links in a document, in order.
SELECT target, link_key, place FROM links WHERE document_id = :id ORDER BY number

-- name: select_keys
-- Select the keys that find a document.
SELECT link_key FROM link_names WHERE document_id = :id

-- name: select_roots
-- Select the synced folders.
SELECT prefix FROM folders

-- name: select_candidates
-- Select the documents that some keys find, among the documents of a condition.
SELECT link_key, documents.id, title, source_path, key_rank
FROM ($keys) AS wanted $then_join link_names ON link_names.link_key = wanted.wanted_key COLLATE $bytewise
$then_join documents ON documents.id = link_names.document_id WHERE {condition}

-- name: select_linking
-- Select the links with some keys in other documents of a condition, in order.
SELECT links.document_id, title, source_path, target, link_key, place
FROM ($keys) AS wanted $then_join links ON links.link_key = wanted.wanted_key COLLATE $bytewise
$then_join documents ON documents.id = links.document_id
WHERE links.document_id <> ? AND {condition} ORDER BY links.document_id, number LIMIT ?
