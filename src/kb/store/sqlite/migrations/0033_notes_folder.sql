-- The notes folder (KB_NOTES_DIR): its last known state, and the engine that holds it. See kb/notes_folder/.
CREATE TABLE notes_folder (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  holder TEXT NOT NULL,
  at TEXT NOT NULL,
  path TEXT NOT NULL DEFAULT '',
  session TEXT NOT NULL DEFAULT '',
  mounts TEXT NOT NULL DEFAULT ''
);
-- The file of each note as it was written or read last. `version` is the note's version at that time, or 0 if the file
-- must be compared again. Notes with another version wait to be written. A row outlives its note until the file is gone.
CREATE TABLE note_files (
  document_id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  source_path TEXT,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,
  base BLOB NOT NULL
);
