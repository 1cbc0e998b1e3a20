-- The neighbours of chunks in their document, and of documents in their thread or in the folder of a note's path.

-- name: select_near
-- Select chunks and their neighbours in their documents: id, document, index and length.
SELECT DISTINCT near.id, near.document_id, near.chunk_index, near.length
FROM chunks AS own JOIN chunks AS near ON near.document_id = own.document_id
  AND abs(near.chunk_index - own.chunk_index) <= %s
WHERE own.id = ANY(%s)

-- name: select_in_threads
-- Select the given documents that are in a thread, each with the four documents before it, nearest first, and the four
-- after it. If a document has several threads, the first by name counts.
SELECT
  here.id,
  ARRAY(
    SELECT document_id FROM document_tags WHERE tag = here.tag AND document_id < here.id ORDER BY document_id DESC LIMIT 4
  ),
  ARRAY(SELECT document_id FROM document_tags WHERE tag = here.tag AND document_id > here.id ORDER BY document_id LIMIT 4)
FROM (
  SELECT document_id AS id, min(tag) AS tag FROM document_tags
  WHERE document_id = ANY(%s) AND tag >= 'thread:' AND tag < 'thread;' GROUP BY document_id
) AS here

-- name: select_in_folders
-- Select the given notes that are in a folder, each with four neighbours on either side. Neighbours are in no thread,
-- and among the thousand nearest notes of the folder.
SELECT
  here.id,
  ARRAY(
    SELECT id FROM (
      SELECT id FROM documents
      WHERE doc_type = 'note' AND strpos(source_path, '/') > 0 AND length(source_path) <= 500
        AND rtrim(source_path, replace(source_path, '/', '')) = here.folder AND id < here.id
      ORDER BY id DESC LIMIT 1000
    ) AS near
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags WHERE document_id = near.id AND tag >= 'thread:' AND tag < 'thread;'
    )
    ORDER BY id DESC LIMIT 4
  ),
  ARRAY(
    SELECT id FROM (
      SELECT id FROM documents
      WHERE doc_type = 'note' AND strpos(source_path, '/') > 0 AND length(source_path) <= 500
        AND rtrim(source_path, replace(source_path, '/', '')) = here.folder AND id > here.id
      ORDER BY id LIMIT 1000
    ) AS near
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags WHERE document_id = near.id AND tag >= 'thread:' AND tag < 'thread;'
    )
    ORDER BY id LIMIT 4
  )
FROM (
  SELECT id, rtrim(source_path, replace(source_path, '/', '')) AS folder FROM documents
  WHERE id = ANY(%s) AND doc_type = 'note' AND strpos(source_path, '/') > 0 AND length(source_path) <= 500
) AS here

-- name: select_only_chunks
-- Select the given documents that have one chunk of at most the given words, with this chunk. The among is filled in.
SELECT document_id, id FROM (
  SELECT document_id, id FROM chunks
  WHERE document_id = ANY(%s) AND chunk_index = 0 AND length <= %s AND NOT EXISTS (
    SELECT 1 FROM chunks AS more WHERE more.document_id = chunks.document_id AND more.chunk_index = 1
  )
) AS single {among}
