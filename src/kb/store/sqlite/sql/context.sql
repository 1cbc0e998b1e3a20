-- The neighbours of documents: the documents of their thread, or of the folder in a note's path. See context.py.

-- name: select_scattered
-- Select the documents of an array of ids whose chunks do not have ascending ids without gaps.
SELECT document_id FROM carray(?) CROSS JOIN scattered_documents ON document_id = value

-- name: select_siblings
-- Select the neighbours of chunks in their documents, for an array of ids: the chunk, the distance, and the neighbour.
SELECT own.id, near.chunk_index - own.chunk_index, near.id
FROM carray(?) CROSS JOIN chunks AS own ON own.id = value CROSS JOIN chunks AS near
  ON near.document_id = own.document_id
  AND near.chunk_index BETWEEN own.chunk_index - ? AND own.chunk_index + ? AND near.id <> own.id

-- name: has_threads
-- Whether any document may have neighbours.
SELECT
  EXISTS (SELECT 1 FROM tags WHERE name >= 'thread:' AND name < 'thread;')
  OR EXISTS (
    SELECT 1 FROM documents INDEXED BY documents_folder
    WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500
  )

-- name: select_in_threads
-- Select the documents of an array of ids that are in a thread, each with the four documents before it, nearest first,
-- and the four after it. If a document has several threads, the first by name counts: tag_id belongs to the row of
-- min(name).
SELECT
  here.id,
  (SELECT group_concat(id) FROM (
    SELECT document_id AS id FROM document_tags WHERE tag_id = here.tag_id AND document_id < here.id
    ORDER BY document_id DESC LIMIT 4
  )),
  (SELECT group_concat(id) FROM (
    SELECT document_id AS id FROM document_tags WHERE tag_id = here.tag_id AND document_id > here.id
    ORDER BY document_id LIMIT 4
  ))
FROM (
  SELECT document_id AS id, tag_id, min(name)
  FROM carray(?) CROSS JOIN document_tags ON document_id = value CROSS JOIN tags ON tags.id = tag_id
  WHERE name >= 'thread:' AND name < 'thread;' GROUP BY document_id
) AS here

-- name: select_in_folders
-- Select the notes of an array of ids that are in a folder, each with four neighbours on either side. Neighbours are in
-- no thread, and among the thousand nearest notes of the folder.
SELECT
  here.id,
  (SELECT group_concat(id) FROM (
    SELECT id FROM (
      SELECT id FROM documents INDEXED BY documents_folder
      WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500
        AND rtrim(source_path, replace(source_path, '/', '')) = here.folder AND id < here.id
      ORDER BY id DESC LIMIT 1000
    ) AS near
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags JOIN tags ON tags.id = tag_id
      WHERE document_id = near.id AND name >= 'thread:' AND name < 'thread;'
    )
    ORDER BY id DESC LIMIT 4
  )),
  (SELECT group_concat(id) FROM (
    SELECT id FROM (
      SELECT id FROM documents INDEXED BY documents_folder
      WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500
        AND rtrim(source_path, replace(source_path, '/', '')) = here.folder AND id > here.id
      ORDER BY id LIMIT 1000
    ) AS near
    WHERE NOT EXISTS (
      SELECT 1 FROM document_tags JOIN tags ON tags.id = tag_id
      WHERE document_id = near.id AND name >= 'thread:' AND name < 'thread;'
    )
    ORDER BY id LIMIT 4
  ))
FROM (
  SELECT id, rtrim(source_path, replace(source_path, '/', '')) AS folder
  FROM carray(?) CROSS JOIN documents ON id = value
  WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500
) AS here

-- name: select_only_chunks
-- Select the documents of an array of ids that have one chunk, with this chunk.
SELECT document_id, id FROM carray(?) CROSS JOIN chunks ON document_id = value AND chunk_index = 0
WHERE NOT EXISTS (SELECT 1 FROM chunks AS more WHERE more.document_id = chunks.document_id AND more.chunk_index = 1)
