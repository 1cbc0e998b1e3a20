-- The newest schema. A new database is made from this file; an older one by migrations/, which must end here too.

CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  source_path TEXT,
  doc_type TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT
);
CREATE INDEX documents_source_path ON documents (source_path);
CREATE INDEX documents_content_hash ON documents (content_hash);
CREATE INDEX documents_doc_type ON documents (doc_type);
CREATE INDEX documents_recent ON documents (COALESCE(updated_at, created_at));

CREATE TABLE tags (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE document_tags (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  tag_id INTEGER NOT NULL REFERENCES tags (id),
  PRIMARY KEY (document_id, tag_id)
) WITHOUT ROWID;
CREATE INDEX document_tags_tag ON document_tags (tag_id, document_id);

-- AUTOINCREMENT: an id is never used twice, so ids in memory stay ascending and a stale one finds nothing.
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  chunk_index INTEGER NOT NULL,
  header TEXT NOT NULL,
  text TEXT NOT NULL,
  heading TEXT NOT NULL,
  page INTEGER,
  line_start INTEGER NOT NULL,
  line_end INTEGER NOT NULL,
  char_start INTEGER NOT NULL,
  char_end INTEGER NOT NULL
);
CREATE UNIQUE INDEX chunks_document ON chunks (document_id, chunk_index);

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  header, text, content = 'chunks', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, header, text) VALUES (new.id, new.header, new.text);
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, header, text) VALUES ('delete', old.id, old.header, old.text);
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, header, text) VALUES ('delete', old.id, old.header, old.text);
  INSERT INTO chunks_fts (rowid, header, text) VALUES (new.id, new.header, new.text);
END;

CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}]);

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  status TEXT NOT NULL DEFAULT 'queued',
  kind TEXT NOT NULL,
  title TEXT,
  filename TEXT,
  source_path TEXT,
  tags TEXT NOT NULL,
  text TEXT,
  staged TEXT,
  progress REAL NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  idempotency_key TEXT,
  request_hash TEXT,
  document_id INTEGER,
  error TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  heartbeat_at TEXT,
  finished_at TEXT
);
CREATE INDEX jobs_status ON jobs (status, id);
CREATE UNIQUE INDEX jobs_idempotency_key ON jobs (idempotency_key);

-- How often chunks were written: which moment of the vectors in memory a transaction sees.
CREATE TABLE generation (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  number INTEGER NOT NULL
);
INSERT INTO generation VALUES (1, 0);
