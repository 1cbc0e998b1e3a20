-- The folders that are kept in step, and the files that stay out although they are in one.

-- name: select_folders
-- The folders that are kept in step.
SELECT prefix, machine, host, path, mounts, at FROM folders ORDER BY prefix

-- name: put_folder
-- A folder is kept in step from where it is now.
INSERT INTO folders (prefix, machine, host, path, mounts, at)
VALUES (:prefix, :machine, :host, :path, :mounts, CAST(:at AS $timestamp))
ON CONFLICT (prefix) DO UPDATE SET
  machine = :machine, host = :host, path = :path, mounts = :mounts, at = CAST(:at AS $timestamp)

-- name: delete_folder
-- A folder is not kept in step any more.
DELETE FROM folders WHERE prefix = :prefix

-- name: select_left_out
-- The files that stay out.
SELECT source_path FROM left_out ORDER BY source_path

-- name: leave_out
-- A file stays out.
INSERT INTO left_out (source_path) VALUES (:source_path) ON CONFLICT DO NOTHING

-- name: let_in
-- A file does not stay out any more.
DELETE FROM left_out WHERE source_path = :source_path
