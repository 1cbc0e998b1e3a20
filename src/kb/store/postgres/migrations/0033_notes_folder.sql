-- The notes folder (KB_NOTES_DIR): its last known state, and the engine that holds it. See kb/notes_folder/.
CREATE TABLE notes_folder (
  only_row integer PRIMARY KEY CHECK (only_row = 1),
  holder text NOT NULL,
  at timestamptz(3) NOT NULL,
  path text NOT NULL DEFAULT '',
  session text NOT NULL DEFAULT '',
  mounts text NOT NULL DEFAULT ''
);
-- The file of each note as it was written or read last. `version` is the note's version at that time, or 0 if the file
-- must be compared again. Notes with another version wait to be written. A row outlives its note until the file is gone.
CREATE TABLE note_files (
  document_id bigint PRIMARY KEY,
  path text COLLATE "C" NOT NULL UNIQUE,
  source_path text,
  version integer NOT NULL,
  state text NOT NULL,
  digest text NOT NULL,
  base bytea NOT NULL
);
