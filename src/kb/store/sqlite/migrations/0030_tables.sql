-- The first schema of every database: a new one, and one of version 2, which legacy_v2 prepares. This file does not
-- change any more. The next change gets the next number. Each column that version 2 lacked is NULL or has a default, so
-- that a program of that version can still write. {dimensions} is the length of a vector.

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
  part_of INTEGER,
  uploaded_as TEXT,
  title_given INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1,
  changed_by TEXT,
  changed_with TEXT,
  changed_why TEXT,
  source TEXT,
  replaces INTEGER,
  omitted TEXT NOT NULL DEFAULT '{}',
  operation INTEGER,
  language TEXT
);
CREATE INDEX documents_operation ON documents (operation) WHERE operation IS NOT NULL;
CREATE INDEX documents_language ON documents (language);
CREATE INDEX documents_replaces ON documents (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX documents_part_of ON documents (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX documents_source_path ON documents (source_path);
CREATE INDEX documents_content_hash ON documents (content_hash);
CREATE INDEX documents_created_at ON documents (created_at);
CREATE INDEX documents_doc_type ON documents (doc_type);
CREATE INDEX documents_recent ON documents (COALESCE(updated_at, created_at));
CREATE INDEX documents_doc_type_recent ON documents (doc_type, COALESCE(updated_at, created_at));
-- The notes of each folder in a path, by id. A short note is ranked with its neighbours, see context.py.
CREATE INDEX documents_folder ON documents (rtrim(source_path, replace(source_path, '/', '')))
  WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500;

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

-- Titles and headings of chunks: as searched, and the headings as a JSON array. A chunk without headings has no
-- section. Sections are deleted after their chunks, because their texts are necessary to remove the chunks from the
-- full text.
CREATE TABLE sections (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL,
  header TEXT NOT NULL,
  heading TEXT NOT NULL,
  segmented TEXT,
  variants TEXT
);
CREATE INDEX sections_document ON sections (document_id);

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  chunk_index INTEGER NOT NULL,
  text TEXT NOT NULL,
  page INTEGER,
  line_start INTEGER NOT NULL DEFAULT 0,
  line_end INTEGER NOT NULL DEFAULT 0,
  char_start INTEGER NOT NULL DEFAULT 0,
  char_end INTEGER NOT NULL DEFAULT 0,
  section_id INTEGER,
  segmented TEXT,
  variants TEXT
);
CREATE UNIQUE INDEX chunks_document ON chunks (document_id, chunk_index);

-- Texts as indexed, see kb/index/words/segment.py. The variants after them come from kb/index/words/word_variants.py.
CREATE VIEW chunk_texts AS
  SELECT
    chunks.id AS id,
    COALESCE(chunks.segmented, chunks.text) || COALESCE(' ' || chunks.variants, '') AS text,
    COALESCE(sections.segmented, sections.header, '') || COALESCE(' ' || sections.variants, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = chunks.section_id;
-- Texts as written.
CREATE VIEW source_texts AS
  SELECT chunks.id AS id, chunks.text AS text, COALESCE(sections.header, '') AS header
  FROM chunks LEFT JOIN sections ON sections.id = chunks.section_id;

-- The text is the first column, because it was the only one in version 2 and its programs may rely on that.
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  text, header, content = 'chunk_texts', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Deleted words leave the index immediately, not only when FTS5 merges segments.
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;
CREATE TRIGGER chunks_ad AFTER DELETE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text) || COALESCE(' ' || old.variants, ''),
    COALESCE((
      SELECT COALESCE(segmented, header) || COALESCE(' ' || variants, '') FROM sections WHERE id = old.section_id
    ), '')
  );
END;
CREATE TRIGGER chunks_au AFTER UPDATE ON chunks BEGIN
  INSERT INTO chunks_fts (chunks_fts, rowid, text, header)
  VALUES (
    'delete', old.id, COALESCE(old.segmented, old.text) || COALESCE(' ' || old.variants, ''),
    COALESCE((
      SELECT COALESCE(segmented, header) || COALESCE(' ' || variants, '') FROM sections WHERE id = old.section_id
    ), '')
  );
  INSERT INTO chunks_fts (rowid, text, header) SELECT id, text, header FROM chunk_texts WHERE id = new.id;
END;

-- The words of documents' names, and each whole name, see kb/index/words/names.py.
CREATE TABLE names (
  token TEXT NOT NULL,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  PRIMARY KEY (token, document_id)
) WITHOUT ROWID;
CREATE INDEX names_document ON names (document_id);
-- Documents whose names must be indexed, by the transaction that changes them or at the start of the engine.
CREATE TABLE unnamed (document_id INTEGER PRIMARY KEY);
CREATE TRIGGER documents_ai_names AFTER INSERT ON documents BEGIN
  INSERT OR IGNORE INTO unnamed VALUES (new.id);
END;
CREATE TRIGGER documents_au_names AFTER UPDATE OF title, source_path, uploaded_as ON documents BEGIN
  INSERT OR IGNORE INTO unnamed VALUES (new.id);
END;

-- The last document that an upgrade has indexed again, see reanalysis.py.
CREATE TABLE reanalysis (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  document_id INTEGER NOT NULL
);

CREATE VIRTUAL TABLE chunks_vec USING vec0 (chunk_id INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}]);

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
  finished_at TEXT,
  depth INTEGER NOT NULL DEFAULT 0,
  sent_by TEXT,
  sent_with TEXT,
  sent_why TEXT,
  limits TEXT,
  source TEXT,
  replaces INTEGER,
  existed INTEGER NOT NULL DEFAULT 0,
  omitted TEXT NOT NULL DEFAULT '{}',
  operation_key TEXT
);
CREATE INDEX jobs_operation ON jobs (operation_key) WHERE operation_key IS NOT NULL;
CREATE INDEX jobs_status ON jobs (status, id);
CREATE INDEX jobs_queue ON jobs (attempts, id) WHERE status = 'queued';
CREATE INDEX jobs_queued_path ON jobs (source_path, id)
  WHERE status IN ('queued', 'running') AND source_path IS NOT NULL;
CREATE INDEX jobs_failed_path ON jobs (source_path, id) WHERE status = 'failed' AND source_path IS NOT NULL;
CREATE INDEX jobs_new_notes ON jobs (id) WHERE status = 'queued' AND attempts = 0 AND staged IS NULL;
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX jobs_part_of ON jobs (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX jobs_staged ON jobs (staged) WHERE staged IS NOT NULL;
CREATE INDEX jobs_done ON jobs (COALESCE(finished_at, created_at)) WHERE status = 'done';
CREATE UNIQUE INDEX jobs_idempotency_key ON jobs (idempotency_key);

-- Kept files that lost their last document, by the hash of their content. kb removes them after the transaction.
CREATE TABLE unneeded_files (content_hash TEXT PRIMARY KEY) WITHOUT ROWID;

-- The number of changes to chunks. It selects the snapshot of the vectors in memory that a transaction sees.
CREATE TABLE generation (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  number INTEGER NOT NULL
);
INSERT INTO generation VALUES (1, 0);

-- The highest id that was ever used. kb never uses an id twice, so ids in memory stay ascending, and an old one finds
-- nothing. AUTOINCREMENT would do the same, but a table of version 2 cannot get it.
CREATE TABLE last_ids (
  name TEXT PRIMARY KEY,
  id INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO last_ids VALUES ('documents', 0), ('chunks', 0), ('jobs', 0);

-- The model that computed the vectors, and its folder, see vector_space.py. NULL means no prefix.
CREATE TABLE vector_space (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  model TEXT NOT NULL,
  precision TEXT NOT NULL,
  digest TEXT NOT NULL,
  query_prefix TEXT,
  passage_prefix TEXT,
  folder TEXT
);

-- The number of vectors computed in each precision since this model is in use, including vectors of deleted chunks.
CREATE TABLE vector_precisions (
  precision TEXT PRIMARY KEY,
  vectors INTEGER NOT NULL
);

-- Codes and copies make searches over many vectors fast. kb computes them from chunks_vec, see vector_codes.py.

-- The mean that the codes are centred on. Without it, kb uses no codes.
CREATE TABLE vector_mean (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mean BLOB NOT NULL
);
CREATE TABLE vector_codes (
  chunk_id INTEGER PRIMARY KEY,
  code BLOB NOT NULL
);
-- Copies of the vectors. A look-up of one takes a hundredth of the time.
CREATE TABLE vector_copies (
  chunk_id INTEGER PRIMARY KEY,
  vector BLOB NOT NULL
);
-- A trigger instead of foreign keys, which another program may have switched off. A copy must never outlive its vector.
CREATE TRIGGER chunks_ad_vectors AFTER DELETE ON chunks BEGIN
  DELETE FROM vector_codes WHERE chunk_id = old.id;
  DELETE FROM vector_copies WHERE chunk_id = old.id;
END;

-- Earlier versions of documents, each valid from `updated_at` or `created_at` to `until`. A version without a content
-- has the present content of its document.
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
  content_id INTEGER,
  source TEXT,
  replaces INTEGER,
  omitted TEXT NOT NULL DEFAULT '{}',
  operation INTEGER,
  language TEXT
);
CREATE INDEX versions_operation ON versions (operation) WHERE operation IS NOT NULL;
CREATE INDEX versions_source_path ON versions (source_path) WHERE doc_type <> 'note';
CREATE INDEX versions_replaces ON versions (replaces) WHERE replaces IS NOT NULL;
CREATE UNIQUE INDEX versions_document ON versions (document_id, number);
CREATE INDEX versions_until ON versions (until);
CREATE INDEX versions_file ON versions (content_hash) WHERE doc_type <> 'note';
CREATE INDEX versions_content ON versions (content_id) WHERE content_id IS NOT NULL;

-- The chunks of earlier versions, compressed, see chunk_compression.py. Only a copy of another database has vectors
-- here.
CREATE TABLE former_contents (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL,
  chunks BLOB NOT NULL,
  vectors BLOB
);
CREATE INDEX former_contents_document ON former_contents (document_id);

-- Deleted documents that can be restored. `number` is their last version.
CREATE TABLE bin (
  document_id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  part_of INTEGER,
  deleted_at TEXT NOT NULL,
  deleted_by TEXT,
  deleted_with TEXT,
  deleted_why TEXT,
  operation INTEGER
);
CREATE INDEX bin_operation ON bin (operation) WHERE operation IS NOT NULL;
CREATE INDEX bin_deleted_at ON bin (deleted_at);
CREATE INDEX bin_part_of ON bin (part_of) WHERE part_of IS NOT NULL;

-- The time from which all earlier versions exist (NULL: from the beginning), and the bytes of their contents.
CREATE TABLE history (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  begins TEXT,
  size INTEGER NOT NULL
);
INSERT INTO history VALUES (1, NULL, 0);
CREATE TRIGGER former_contents_ai AFTER INSERT ON former_contents BEGIN
  UPDATE history SET size = size + length(new.chunks) + COALESCE(length(new.vectors), 0);
END;
CREATE TRIGGER former_contents_ad AFTER DELETE ON former_contents BEGIN
  UPDATE history SET size = size - length(old.chunks) - COALESCE(length(old.vectors), 0);
END;

-- Changes that belong together and that an undo reverts together, such as all changes of one command. `key` is the
-- value that its requests share, `at` the time of the first one.
CREATE TABLE operations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  at TEXT NOT NULL,
  by_key TEXT,
  client TEXT
);

-- Synced folders: the prefix of their paths, their machine, and its devices.
CREATE TABLE folders (
  prefix TEXT PRIMARY KEY,
  machine TEXT NOT NULL,
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  mounts TEXT NOT NULL,
  at TEXT NOT NULL
) WITHOUT ROWID;
-- Files that syncs leave out.
CREATE TABLE left_out (source_path TEXT PRIMARY KEY) WITHOUT ROWID;

-- The audit log, without content. An id is never used twice, so that a cursor stays valid.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  by_key TEXT,
  client TEXT,
  action TEXT NOT NULL,
  document_id INTEGER,
  job_id INTEGER,
  key TEXT
);
CREATE INDEX audit_document ON audit (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX audit_by_key ON audit (by_key) WHERE by_key IS NOT NULL;
-- A second set of vectors: the next one, or the previous one. See reembed_vectors.py. Its tables are like the tables of
-- the set in use, but second_vectors has all vectors in the form of vector_copies.
CREATE TABLE second_space (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  state TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  model TEXT NOT NULL,
  precision TEXT NOT NULL,
  digest TEXT NOT NULL,
  query_prefix TEXT,
  passage_prefix TEXT,
  folder TEXT
);
CREATE TABLE second_vectors (
  chunk_id INTEGER PRIMARY KEY,
  vector BLOB NOT NULL
);
CREATE TABLE second_mean (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mean BLOB NOT NULL
);
CREATE TABLE second_codes (
  chunk_id INTEGER PRIMARY KEY,
  code BLOB NOT NULL
);
CREATE TRIGGER chunks_ad_second AFTER DELETE ON chunks BEGIN
  DELETE FROM second_vectors WHERE chunk_id = old.id;
  DELETE FROM second_codes WHERE chunk_id = old.id;
END;
