-- What belongs together and is taken back together, the folders that are kept in step, and one spelling of each path.

CREATE TABLE operations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  at TEXT NOT NULL,
  by_key TEXT,
  client TEXT
);
ALTER TABLE documents ADD COLUMN operation INTEGER;
CREATE INDEX documents_operation ON documents (operation) WHERE operation IS NOT NULL;
ALTER TABLE versions ADD COLUMN operation INTEGER;
CREATE INDEX versions_operation ON versions (operation) WHERE operation IS NOT NULL;
CREATE INDEX versions_source_path ON versions (source_path) WHERE doc_type <> 'note';
ALTER TABLE bin ADD COLUMN operation INTEGER;
CREATE INDEX bin_operation ON bin (operation) WHERE operation IS NOT NULL;
ALTER TABLE jobs ADD COLUMN operation_key TEXT;
CREATE INDEX jobs_operation ON jobs (operation_key) WHERE operation_key IS NOT NULL;
CREATE INDEX jobs_queued_path ON jobs (source_path, id)
  WHERE status IN ('queued', 'running') AND source_path IS NOT NULL;
CREATE INDEX jobs_failed_path ON jobs (source_path, id) WHERE status = 'failed' AND source_path IS NOT NULL;
CREATE INDEX jobs_new_notes ON jobs (id) WHERE status = 'queued' AND attempts = 0 AND staged IS NULL;

CREATE TABLE folders (
  prefix TEXT PRIMARY KEY,
  machine TEXT NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  mounts TEXT NOT NULL,
  at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE left_out (source_path TEXT PRIMARY KEY) WITHOUT ROWID;

UPDATE documents SET source_path = nfc(source_path) WHERE CASE WHEN source_path IS NOT NULL THEN source_path <> nfc(source_path) END
  AND NOT EXISTS (SELECT 1 FROM documents AS other WHERE other.source_path = nfc(documents.source_path));
UPDATE jobs SET source_path = nfc(source_path) WHERE CASE WHEN source_path IS NOT NULL THEN source_path <> nfc(source_path) END;
UPDATE versions SET source_path = nfc(source_path) WHERE CASE WHEN source_path IS NOT NULL THEN source_path <> nfc(source_path) END;
