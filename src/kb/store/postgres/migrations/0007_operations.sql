-- What belongs together and is taken back together, the folders that are kept in step, and one spelling of each path.

CREATE TABLE operations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text COLLATE "C" NOT NULL UNIQUE,
  at timestamptz(3) NOT NULL,
  by_key text,
  client text
);
ALTER TABLE documents ADD operation bigint;
CREATE INDEX documents_operation ON documents (operation) WHERE operation IS NOT NULL;
ALTER TABLE versions ADD operation bigint;
CREATE INDEX versions_operation ON versions (operation) WHERE operation IS NOT NULL;
CREATE INDEX versions_source_path ON versions (source_path) WHERE doc_type <> 'note';
ALTER TABLE bin ADD operation bigint;
CREATE INDEX bin_operation ON bin (operation) WHERE operation IS NOT NULL;
ALTER TABLE jobs ADD operation_key text COLLATE "C";
CREATE INDEX jobs_operation ON jobs (operation_key) WHERE operation_key IS NOT NULL;
CREATE INDEX jobs_failed_path ON jobs (source_path, id) WHERE status = 'failed' AND source_path IS NOT NULL;
CREATE INDEX jobs_new_notes ON jobs (id) WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND staged_at IS NULL;

CREATE TABLE folders (
  prefix text COLLATE "C" PRIMARY KEY,
  machine text NOT NULL,
  host text NOT NULL,
  path text NOT NULL,
  mounts text NOT NULL,
  at timestamptz(3) NOT NULL
);
CREATE TABLE left_out (source_path text COLLATE "C" PRIMARY KEY);

UPDATE documents SET source_path = normalize(source_path, NFC) WHERE source_path <> normalize(source_path, NFC)
  AND NOT EXISTS (SELECT 1 FROM documents AS other WHERE other.source_path = normalize(documents.source_path, NFC));
UPDATE jobs SET source_path = normalize(source_path, NFC) WHERE source_path <> normalize(source_path, NFC);
UPDATE versions SET source_path = normalize(source_path, NFC) WHERE source_path <> normalize(source_path, NFC);
