-- The folders that the engine keeps in step: the notes folder (''), the inbox, and each folder of `folders` that kb also
-- writes to, under its prefix. See kb/notes_folder/.
ALTER TABLE folders ADD COLUMN is_kept INTEGER NOT NULL DEFAULT 0;
CREATE TABLE kept_folders (
  folder TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  at TEXT NOT NULL,
  path TEXT NOT NULL DEFAULT '',
  session TEXT NOT NULL DEFAULT '',
  mounts TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
INSERT INTO kept_folders SELECT '', holder, at, path, session, mounts FROM notes_folder;
DROP TABLE notes_folder;
-- The file of each document as it was written or read last. `version` is the document's version at that time, or 0 if the
-- file must be compared again. Notes with another version wait to be written. A row outlives its note until the file is
-- gone. A negative document is the job of a file whose document does not exist yet.
ALTER TABLE note_files RENAME TO former_note_files;
CREATE TABLE note_files (
  folder TEXT NOT NULL,
  document_id INTEGER NOT NULL,
  path TEXT NOT NULL,
  source_path TEXT,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,
  base BLOB NOT NULL,
  PRIMARY KEY (folder, document_id),
  UNIQUE (folder, path)
) WITHOUT ROWID;
INSERT INTO note_files SELECT '', document_id, path, source_path, version, state, digest, base FROM former_note_files;
DROP TABLE former_note_files;
