-- A database as kb 3 left it before schema version 4; store_v3.py adds the vectors.

CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  source_path TEXT,
  doc_type TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  date TEXT,
  own_tags TEXT NOT NULL DEFAULT '[]',
  part_of INTEGER
);
CREATE INDEX documents_part_of ON documents (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX documents_source_path ON documents (source_path);
CREATE INDEX documents_content_hash ON documents (content_hash);
CREATE INDEX documents_created_at ON documents (created_at);
CREATE INDEX documents_doc_type ON documents (doc_type);
CREATE INDEX documents_recent ON documents (COALESCE(updated_at, created_at));
CREATE INDEX documents_doc_type_recent ON documents (doc_type, COALESCE(updated_at, created_at));

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

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  chunk_index INTEGER NOT NULL,
  header TEXT NOT NULL DEFAULT '',
  text TEXT NOT NULL,
  heading TEXT NOT NULL DEFAULT '[]',
  page INTEGER,
  line_start INTEGER NOT NULL DEFAULT 0,
  line_end INTEGER NOT NULL DEFAULT 0,
  char_start INTEGER NOT NULL DEFAULT 0,
  char_end INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX chunks_document ON chunks (document_id, chunk_index);

CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  text, header, content = 'chunks', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text, header) VALUES (new.id, new.text, new.header);
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header) VALUES ('delete', old.id, old.text, old.header);
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header) VALUES ('delete', old.id, old.text, old.header);
  INSERT INTO chunks_fts (rowid, text, header) VALUES (new.id, new.text, new.header);
END;

CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[384]);

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  status TEXT NOT NULL DEFAULT 'queued',
  kind TEXT NOT NULL DEFAULT 'note',
  title TEXT,
  filename TEXT,
  source_path TEXT,
  tags TEXT NOT NULL DEFAULT '[]',
  text TEXT,
  staged TEXT,
  content_hash TEXT,
  progress REAL NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  idempotency_key TEXT,
  request_hash TEXT,
  part_of INTEGER,
  document_id INTEGER,
  error TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  heartbeat_at TEXT,
  finished_at TEXT
);
CREATE INDEX jobs_status ON jobs (status, id);
CREATE INDEX jobs_staged ON jobs (staged) WHERE staged IS NOT NULL;
CREATE INDEX jobs_document ON jobs (document_id);
CREATE UNIQUE INDEX jobs_idempotency_key ON jobs (idempotency_key);

CREATE TABLE unneeded_files (content_hash TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE generation (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  number INTEGER NOT NULL
);
INSERT INTO generation VALUES (1, 0);

CREATE TABLE last_ids (
  name TEXT PRIMARY KEY,
  id INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO last_ids VALUES ('documents', 0), ('chunks', 0), ('jobs', 0);

CREATE TABLE vector_space (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  model TEXT NOT NULL,
  precision TEXT NOT NULL,
  digest TEXT NOT NULL
);

PRAGMA user_version = 3;

-- 1: a note without a title. 2: a note that was given one. 3: a file, sent twice under two names. 5: a message with an
-- attachment (6). 7: a file that was given a title. 8: what the command of a version 2 left, without a job.
INSERT INTO documents (id, title, source_path, doc_type, content_hash, created_at, updated_at, own_tags, part_of) VALUES
  (1, 'The lamp is lit at dusk', NULL, 'note', 'hash1', '2026-01-01 00:00:00.000', NULL, '[]', NULL),
  (2, 'Harbour hours', NULL, 'note', 'hash2', '2026-01-02 00:00:00.000', '2026-01-03 00:00:00.000', '[]', NULL),
  (3, 'Ledger', NULL, 'text', 'hash3', '2026-01-03 00:00:00.000', NULL, '["money"]', NULL),
  (5, 'A message', '/mail/1.eml', 'eml', 'hash5', '2026-01-05 00:00:00.000', NULL, '[]', NULL),
  (6, 'a', '/mail/1.eml#a.txt', 'text', 'hash6', '2026-01-06 00:00:00.000', NULL, '[]', 5),
  (7, 'Annual report', '/r.pdf', 'pdf', 'hash7', '2026-01-07 00:00:00.000', NULL, '[]', NULL),
  (8, 'Old', '/old.txt', 'text', 'hash8', '2026-01-08 00:00:00', NULL, '[]', NULL);
INSERT INTO tags VALUES (1, 'sea'), (2, 'money');
INSERT INTO document_tags VALUES (1, 1), (2, 1), (3, 2);
INSERT INTO chunks (id, document_id, chunk_index, header, text, heading, page, line_start, line_end, char_start, char_end) VALUES
  (1, 1, 0, '', 'The lamp is lit at dusk.', '[]', NULL, 1, 1, 0, 24),
  (2, 2, 0, 'Harbour hours', 'Open from six,
', '[]', NULL, 1, 2, 0, 15),
  (4, 2, 1, 'Harbour hours', 'closed at ten.', '[]', NULL, 2, 2, 15, 29),
  (5, 3, 0, 'Ledger', 'Sums of the year', '["Part", "One"]', 7, 1, 1, 0, 16),
  (6, 5, 0, 'A message', 'See the attachment.', '[]', NULL, 1, 1, 0, 19),
  (7, 6, 0, 'a', 'attached words', '[]', NULL, 1, 1, 0, 14),
  (8, 7, 0, 'Annual report', 'profit and loss', '[]', 1, 1, 1, 0, 15),
  (9, 8, 0, 'Old', 'old words', '[]', NULL, 1, 1, 0, 9);
INSERT INTO jobs (id, status, kind, title, filename, source_path, staged, text, idempotency_key, request_hash, part_of, document_id,
  created_at, finished_at) VALUES
  (1, 'done', 'note', NULL, NULL, NULL, NULL, NULL, 'key1', 'request1', NULL, 1, '2026-01-01 00:00:00.000', '2026-01-01 00:00:01.000'),
  (2, 'done', 'note', 'Harbour hours', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, '2026-01-02 00:00:00.000', '2026-01-02 00:00:01.000'),
  (3, 'done', 'file', NULL, 'first.txt', NULL, NULL, NULL, NULL, NULL, NULL, 3, '2026-01-03 00:00:00.000', '2026-01-03 00:00:01.000'),
  (4, 'done', 'file', NULL, 'second.txt', NULL, NULL, NULL, NULL, NULL, NULL, 3, '2026-01-04 00:00:00.000', '2026-01-04 00:00:01.000'),
  (5, 'done', 'file', NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, 3, '2026-01-04 00:00:00.000', '2026-01-04 00:00:01.000'),
  (6, 'done', 'file', NULL, '1.eml', '/mail/1.eml', NULL, NULL, NULL, NULL, NULL, 5, '2026-01-05 00:00:00.000', '2026-01-05 00:00:01.000'),
  (7, 'done', 'file', NULL, 'a.txt', '/mail/1.eml#a.txt', NULL, NULL, NULL, NULL, 5, 6, '2026-01-06 00:00:00.000', '2026-01-06 00:00:01.000'),
  (8, 'done', 'file', 'Annual report', 'r.pdf', '/r.pdf', NULL, NULL, NULL, NULL, NULL, 7, '2026-01-07 00:00:00.000', '2026-01-07 00:00:01.000'),
  (9, 'queued', 'file', NULL, 'b.eml', '/mail/1.eml#b.eml', '4f2b0c7c7aa042d7a852072de9075bd3-2', NULL, NULL, NULL, 5, NULL, '2026-01-08 00:00:00.000', NULL),
  (10, 'running', 'file', NULL, 'c.eml', NULL, '7d89aad63feb47a2bfebba2230a454f0', NULL, NULL, NULL, NULL, NULL, '2026-01-08 00:00:00.000', NULL),
  (11, 'queued', 'note', NULL, NULL, NULL, NULL, 'A note - with a dash', 'key11', 'request11', NULL, NULL, '2026-01-08 00:00:00.000', NULL);
UPDATE last_ids SET id = CASE name WHEN 'documents' THEN 12 WHEN 'chunks' THEN 20 ELSE 15 END;
UPDATE generation SET number = 9;
INSERT INTO vector_space VALUES (1, 'all-MiniLM-L6-v2', 'fp32', '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db');
