-- Synced folders, and the files that they leave out.

-- name: select_folders
-- Select the synced folders.
SELECT prefix, machine, host, path, mounts, at, watch, is_kept FROM folders ORDER BY prefix

-- name: put_folder
-- Insert or update a synced folder. Another machine does not watch it yet, and kb writes to no place that it does not know.
INSERT INTO folders (prefix, machine, host, path, mounts, at)
VALUES (:prefix, :machine, :host, :path, :mounts, CAST(:at AS $timestamp))
ON CONFLICT (prefix) DO UPDATE SET
  watch = CASE WHEN folders.machine = :machine AND (folders.is_kept = 0 OR folders.path = :path) THEN folders.watch END,
  is_kept = CASE WHEN folders.machine = :machine AND folders.path = :path THEN folders.is_kept ELSE 0 END,
  machine = :machine, host = :host, path = :path, mounts = :mounts, at = CAST(:at AS $timestamp)

-- name: set_watch
-- Record how a synced folder is watched.
UPDATE folders SET watch = :watch, is_kept = :is_kept WHERE prefix = :prefix

-- name: delete_folder
-- Delete a synced folder.
DELETE FROM folders WHERE prefix = :prefix

-- name: select_left_out
-- Select the files that syncs leave out.
SELECT source_path FROM left_out ORDER BY source_path

-- name: leave_out
-- Leave a file out.
INSERT INTO left_out (source_path) VALUES (:source_path) ON CONFLICT DO NOTHING

-- name: let_in
-- Stop leaving a file out.
DELETE FROM left_out WHERE source_path = :source_path
