-- Former versions of documents, and the bin.

ALTER TABLE documents ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE documents ADD COLUMN changed_by TEXT;
ALTER TABLE documents ADD COLUMN changed_with TEXT;
ALTER TABLE documents ADD COLUMN changed_why TEXT;
ALTER TABLE jobs ADD COLUMN sent_by TEXT;
ALTER TABLE jobs ADD COLUMN sent_with TEXT;
ALTER TABLE jobs ADD COLUMN sent_why TEXT;

CREATE TABLE versions (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  title TEXT NOT NULL,
  source_path TEXT,
  doc_type TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  tags TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  until TEXT NOT NULL,
  date TEXT,
  own_tags TEXT NOT NULL,
  part_of INTEGER,
  uploaded_as TEXT,
  title_given INTEGER NOT NULL,
  changed_by TEXT,
  changed_with TEXT,
  changed_why TEXT,
  content_id INTEGER
);
CREATE UNIQUE INDEX versions_document ON versions (document_id, number);
CREATE INDEX versions_until ON versions (until);
CREATE INDEX versions_file ON versions (content_hash) WHERE doc_type <> 'note';
CREATE INDEX versions_content ON versions (content_id) WHERE content_id IS NOT NULL;

CREATE TABLE former_contents (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL,
  chunks BLOB NOT NULL,
  vectors BLOB
);
CREATE INDEX former_contents_document ON former_contents (document_id);

CREATE TABLE bin (
  document_id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  part_of INTEGER,
  deleted_at TEXT NOT NULL,
  deleted_by TEXT,
  deleted_with TEXT,
  deleted_why TEXT
);
CREATE INDEX bin_deleted_at ON bin (deleted_at);
CREATE INDEX bin_part_of ON bin (part_of) WHERE part_of IS NOT NULL;

CREATE TABLE history (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  begins TEXT,
  size INTEGER NOT NULL
);
-- Of what was changed before, nothing was kept.
INSERT INTO history SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM documents) THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END, 0;
CREATE TRIGGER former_contents_ai AFTER INSERT ON former_contents BEGIN
  UPDATE history SET size = size + length(new.chunks) + COALESCE(length(new.vectors), 0);
END;
CREATE TRIGGER former_contents_ad AFTER DELETE ON former_contents BEGIN
  UPDATE history SET size = size - length(old.chunks) - COALESCE(length(old.vectors), 0);
END;
