-- The notes folder and its files.

-- name: take_folder
-- Become or stay the engine that holds the folder, unless another engine held it in the last :seconds; 0 seconds always take it.
INSERT INTO notes_folder (only_row, holder, at) VALUES (1, :holder, $now)
ON CONFLICT (only_row) DO UPDATE SET holder = :holder, at = $now
WHERE notes_folder.holder IN (:holder, '') OR :seconds <= 0 OR notes_folder.at < $seconds_ago
RETURNING only_row

-- name: release_folder
-- Let go of the folder.
UPDATE notes_folder SET holder = '' WHERE holder = :holder

-- name: select_folder
-- Select the state of the folder.
SELECT path, session, mounts FROM notes_folder

-- name: set_folder
-- Set the state of the folder.
UPDATE notes_folder SET path = :path, session = :session, mounts = :mounts

-- name: select_files
-- Select the files of notes. The digests of other files begin with "file ".
SELECT document_id, path, source_path, version, state, digest FROM note_files WHERE substr(digest, 1, 5) <> 'file ' ORDER BY path

-- name: select_attachments
-- Select the files that are not notes.
SELECT document_id, path, source_path, version, state, digest FROM note_files WHERE substr(digest, 1, 5) = 'file ' ORDER BY path

-- name: select_base
-- Select the content of a file when it was written or read last.
SELECT base FROM note_files WHERE document_id = :document_id

-- name: put_file
-- Insert or update a file.
INSERT INTO note_files (document_id, path, source_path, version, state, digest, base)
VALUES (:document_id, :path, :source_path, :version, :state, :digest, :base)
ON CONFLICT (document_id) DO UPDATE SET
  path = :path, source_path = :source_path, version = :version, state = :state, digest = :digest, base = :base

-- name: free_path
-- Take a path from another note's file.
UPDATE note_files SET path = path || '/' || document_id, state = '' WHERE path = :path AND document_id <> :document_id

-- name: settle_file
-- Record that a file matches a version of its note.
UPDATE note_files SET version = :version WHERE document_id = :document_id

-- name: delete_file
-- Delete the row of a file.
DELETE FROM note_files WHERE document_id = :document_id

-- name: delete_files
-- Delete the rows of all files.
DELETE FROM note_files

-- name: distrust_files
-- Forget the content of the files, but not the notes that they belong to.
UPDATE note_files SET version = 0, state = '', digest = '', base = :nothing WHERE substr(digest, 1, 5) <> 'file '

-- name: select_unwritten
-- Select the notes that changed since their file was written or read, and the notes without a file.
SELECT documents.id, documents.version
FROM documents LEFT JOIN note_files ON document_id = documents.id
WHERE doc_type = 'note' AND COALESCE(note_files.version, 0) <> documents.version
ORDER BY documents.id

-- name: select_gone
-- Select the notes that no longer exist, but still have a file.
SELECT document_id FROM note_files
WHERE substr(digest, 1, 5) <> 'file ' AND NOT EXISTS (
  SELECT 1 FROM documents WHERE documents.id = document_id AND doc_type = 'note'
)
ORDER BY document_id

-- name: select_unwritten_attachments
-- Select the attachments that changed since their file was written or read, and the attachments without a file.
SELECT documents.id, documents.version FROM note_files JOIN documents ON documents.id = document_id
WHERE substr(digest, 1, 5) = 'file ' AND note_files.version <> documents.version
UNION
SELECT id, version FROM documents
WHERE source_path >= 'attachments/' AND source_path < 'attachments0' AND doc_type <> 'note'
  AND NOT EXISTS (SELECT 1 FROM note_files WHERE document_id = documents.id)
ORDER BY 1
