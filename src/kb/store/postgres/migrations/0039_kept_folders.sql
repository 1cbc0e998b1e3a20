-- The folders that the engine keeps in step: the notes folder (''), the inbox, and each folder of `folders` that kb also
-- writes to, under its prefix. See kb/notes_folder/.
ALTER TABLE folders ADD COLUMN is_kept smallint NOT NULL DEFAULT 0;
ALTER TABLE notes_folder RENAME TO kept_folders;
ALTER TABLE kept_folders ADD COLUMN folder text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE kept_folders DROP COLUMN only_row;
ALTER TABLE kept_folders ADD PRIMARY KEY (folder);
-- The files of each folder. A negative document is the job of a file whose document does not exist yet.
ALTER TABLE note_files ADD COLUMN folder text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE note_files DROP CONSTRAINT note_files_pkey;
ALTER TABLE note_files DROP CONSTRAINT note_files_path_key;
ALTER TABLE note_files ADD PRIMARY KEY (folder, document_id);
ALTER TABLE note_files ADD UNIQUE (folder, path);
