-- The folders that the engine keeps, and their files.

-- name: take_folder
-- Become or stay the engine that holds a folder, unless another engine held it in the last :seconds; 0 seconds always take it.
INSERT INTO kept_folders (folder, holder, at) VALUES (:folder, :holder, $now)
ON CONFLICT (folder) DO UPDATE SET holder = :holder, at = $now
WHERE kept_folders.holder IN (:holder, '') OR :seconds <= 0 OR kept_folders.at < $seconds_ago
RETURNING folder

-- name: release_folder
-- Let go of a folder.
UPDATE kept_folders SET holder = '' WHERE folder = :folder AND holder = :holder

-- name: select_folder
-- Select the state of a folder.
SELECT path, session, mounts FROM kept_folders WHERE folder = :folder

-- name: set_folder
-- Set the state of a folder.
UPDATE kept_folders SET path = :path, session = :session, mounts = :mounts WHERE folder = :folder

-- name: delete_folder
-- Delete the state of a folder.
DELETE FROM kept_folders WHERE folder = :folder

-- name: select_files
-- Select the files of notes. The digests of other files begin with "file ".
SELECT document_id, path, source_path, version, state, digest FROM note_files
WHERE folder = :folder AND substr(digest, 1, 5) <> 'file ' ORDER BY path

-- name: select_attachments
-- Select the files that are not notes.
SELECT document_id, path, source_path, version, state, digest FROM note_files
WHERE folder = :folder AND substr(digest, 1, 5) = 'file ' ORDER BY path

-- name: select_base
-- Select the content of a file when it was written or read last.
SELECT base FROM note_files WHERE folder = :folder AND document_id = :document_id

-- name: put_file
-- Insert or update a file.
INSERT INTO note_files (folder, document_id, path, source_path, version, state, digest, base)
VALUES (:folder, :document_id, :path, :source_path, :version, :state, :digest, :base)
ON CONFLICT (folder, document_id) DO UPDATE SET
  path = :path, source_path = :source_path, version = :version, state = :state, digest = :digest, base = :base

-- name: delete_other
-- Delete the row of another file that is not a note at a path: that of its job, or of a former document.
DELETE FROM note_files
WHERE folder = :folder AND path = :path AND document_id <> :document_id AND substr(digest, 1, 5) = 'file '

-- name: free_path
-- Take a path from another note's file.
UPDATE note_files SET path = path || '/' || document_id, state = ''
WHERE folder = :folder AND path = :path AND document_id <> :document_id

-- name: settle_file
-- Record that a file matches a version of its note.
UPDATE note_files SET version = :version WHERE folder = :folder AND document_id = :document_id

-- name: delete_file
-- Delete the row of a file.
DELETE FROM note_files WHERE folder = :folder AND document_id = :document_id

-- name: delete_files
-- Delete the rows of all files.
DELETE FROM note_files WHERE folder = :folder

-- name: distrust_files
-- Forget the content of the files, but not the notes that they belong to.
UPDATE note_files SET version = 0, state = '', digest = '', base = :nothing
WHERE folder = :folder AND substr(digest, 1, 5) <> 'file '

-- name: select_unwritten
-- Select the notes of a folder that changed since their file was written or read, and those without a file. A note is in
-- the folder that has the beginning of its path, or else in the notes folder.
SELECT documents.id, documents.version
FROM documents LEFT JOIN note_files ON document_id = documents.id AND folder = :folder
WHERE doc_type = 'note' AND COALESCE(note_files.version, 0) <> documents.version AND COALESCE((
  SELECT prefix FROM folders
  WHERE is_kept = 1 AND documents.source_path >= prefix
    AND documents.source_path < substr(prefix, 1, length(prefix) - 1) || '0'
  ORDER BY prefix DESC LIMIT 1
), '') = :folder
ORDER BY documents.id

-- name: select_without_path
-- Select the notes without a path that were made after a note and since a time.
SELECT id FROM documents
WHERE id > :after AND doc_type = 'note' AND source_path IS NULL AND created_at >= CAST(:since AS $timestamp) ORDER BY id

-- name: select_gone
-- Select the notes that no longer exist, or left the folder, but still have a file there; none if kb keeps it no longer.
SELECT document_id FROM note_files
WHERE folder = :folder AND substr(digest, 1, 5) <> 'file '
  AND (:folder = '' OR EXISTS (SELECT 1 FROM folders WHERE prefix = :folder AND is_kept = 1))
  AND NOT EXISTS (
  SELECT 1 FROM documents
  WHERE documents.id = document_id AND doc_type = 'note' AND COALESCE((
    SELECT prefix FROM folders
    WHERE is_kept = 1 AND documents.source_path >= prefix
      AND documents.source_path < substr(prefix, 1, length(prefix) - 1) || '0'
    ORDER BY prefix DESC LIMIT 1
  ), '') = :folder
)
ORDER BY document_id

-- name: select_unwritten_attachments
-- Select the attachments that changed since their file was written or read, and the attachments without a file.
SELECT documents.id, documents.version FROM note_files JOIN documents ON documents.id = document_id
WHERE folder = :folder AND substr(digest, 1, 5) = 'file ' AND note_files.version <> documents.version
UNION
SELECT id, version FROM documents
WHERE source_path >= :first AND source_path < :end AND doc_type <> 'note'
  AND NOT EXISTS (SELECT 1 FROM note_files WHERE folder = :folder AND document_id = documents.id)
ORDER BY 1
