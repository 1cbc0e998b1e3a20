-- The first schema of every database. This file does not change any more. The next change gets the next number.

-- The shard key is the document: every table that grows with the documents has it in its primary key, so that Citus can
-- distribute them together. `terms` and the tables with one row are small and would be reference tables. Times have
-- milliseconds, as in answers. Texts that are sorted or searched by prefix are compared by code point, in any language
-- of the database.

-- The current time, rounded down to the millisecond.
CREATE FUNCTION now_ms() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
  AS $$ SELECT date_trunc('milliseconds', clock_timestamp()) $$;

CREATE SEQUENCE document_ids;
CREATE SEQUENCE chunk_ids;

CREATE TABLE documents (
  id bigint PRIMARY KEY,
  title text NOT NULL,
  source_path text COLLATE "C",
  doc_type text COLLATE "C" NOT NULL,
  content_hash text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3),
  date text,
  own_day text COLLATE "C",
  own_tags text[] NOT NULL,
  part_of bigint,
  uploaded_as text,
  title_given boolean NOT NULL,
  version int NOT NULL DEFAULT 1,
  changed_by text,
  changed_with text,
  changed_why text,
  source text,
  replaces bigint,
  omitted text NOT NULL DEFAULT '{}',
  operation bigint,
  language text COLLATE "C"
);
COMMENT ON COLUMN documents.own_day IS 'the day that date names, for filters';
COMMENT ON COLUMN documents.language IS 'the ISO 639-1 code of what its text is in, if that is clear';
CREATE INDEX documents_operation ON documents (operation) WHERE operation IS NOT NULL;
CREATE INDEX documents_language ON documents (language);
CREATE INDEX documents_replaces ON documents (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX documents_part_of ON documents (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX documents_source_path ON documents (source_path);
CREATE INDEX documents_content_hash ON documents (content_hash);
CREATE INDEX documents_created_at ON documents (created_at);
CREATE INDEX documents_recent ON documents (COALESCE(updated_at, created_at), id);
CREATE INDEX documents_doc_type_recent ON documents (doc_type, COALESCE(updated_at, created_at), id);
-- The notes of each folder in a path, by id. A short note is ranked with its neighbours, see context.py.
CREATE INDEX documents_folder ON documents (rtrim(source_path, replace(source_path, '/', '')), id)
  WHERE doc_type = 'note' AND strpos(source_path, '/') > 0 AND length(source_path) <= 500;

CREATE TABLE document_tags (
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  tag text COLLATE "C" NOT NULL,
  PRIMARY KEY (document_id, tag)
);
CREATE INDEX document_tags_tag ON document_tags (tag, document_id);

-- Titles and headings of chunks: as searched, and as a list of headings.
CREATE TABLE sections (
  id bigint GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  header text NOT NULL,
  heading text[] NOT NULL,
  PRIMARY KEY (id, document_id)
);
CREATE INDEX sections_document ON sections (document_id);

-- `length` is the number of words, including the header's words.
CREATE TABLE chunks (
  id bigint NOT NULL,
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  chunk_index int NOT NULL,
  text text NOT NULL,
  page int,
  line_start int NOT NULL,
  line_end int NOT NULL,
  char_start int NOT NULL,
  char_end int NOT NULL,
  section_id bigint,
  length int NOT NULL,
  PRIMARY KEY (id, document_id)
);
CREATE UNIQUE INDEX chunks_document ON chunks (document_id, chunk_index) INCLUDE (id, length);

-- The full text: each word once with its number of chunks, and its positions in them. `count` is the number of
-- occurrences, twice in a header. `places` are positions of words, doubled, plus one in a header. A word without chunks
-- is deleted.
CREATE TABLE terms (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  term text COLLATE "C" NOT NULL UNIQUE,
  chunks bigint NOT NULL
);
CREATE TABLE postings (
  chunk_id bigint NOT NULL,
  document_id bigint NOT NULL,
  term_id bigint NOT NULL,
  count int NOT NULL,
  length int NOT NULL,
  places int[] NOT NULL,
  PRIMARY KEY (term_id, chunk_id, document_id) INCLUDE (count, length)
);
CREATE INDEX postings_document ON postings (document_id);

-- The names of documents, see kb/index/words/names.py.
CREATE TABLE names (
  document_id bigint NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  token text COLLATE "C" NOT NULL,
  PRIMARY KEY (document_id, token)
);
CREATE INDEX names_token ON names (token, document_id);
COMMENT ON TABLE names IS 'by which words the names of documents are found, each name also as a whole';

CREATE TABLE unnamed (
  document_id bigint PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE
);
COMMENT ON TABLE unnamed IS 'documents whose names are to be written, by the transaction that changes them';
CREATE FUNCTION note_names() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO unnamed VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END
$$;
CREATE TRIGGER documents_insert_names AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION note_names();
CREATE TRIGGER documents_update_names AFTER UPDATE OF title, source_path, uploaded_as ON documents
  FOR EACH ROW EXECUTE FUNCTION note_names();

-- The number of chunks and of their words.
CREATE TABLE statistics (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  chunks bigint NOT NULL,
  words bigint NOT NULL
);
INSERT INTO statistics (chunks, words) VALUES (0, 0);

-- `run_by` is the number of the engine that runs the job. The engine keeps this number locked while it runs.
CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  status text NOT NULL DEFAULT 'queued',
  kind text NOT NULL,
  title text,
  filename text,
  source_path text COLLATE "C",
  tags text[] NOT NULL DEFAULT '{}',
  text text,
  staged text,
  staged_at text,
  content_hash text,
  progress double precision NOT NULL DEFAULT 0,
  attempts int NOT NULL DEFAULT 0,
  idempotency_key text UNIQUE,
  request_hash text,
  part_of bigint,
  document_id bigint,
  error text,
  created_at timestamptz(3) NOT NULL DEFAULT now_ms(),
  started_at timestamptz(3),
  heartbeat_at timestamptz(3),
  finished_at timestamptz(3),
  depth int NOT NULL,
  sent_by text,
  sent_with text,
  sent_why text,
  limits text,
  source text,
  replaces bigint,
  run_by int,
  existed boolean NOT NULL DEFAULT false,
  omitted text NOT NULL DEFAULT '{}',
  operation_key text COLLATE "C"
);
COMMENT ON COLUMN jobs.staged_at IS 'the data directory that has the staged file, until its engine brings it here';
CREATE INDEX jobs_operation ON jobs (operation_key) WHERE operation_key IS NOT NULL;
CREATE INDEX jobs_status ON jobs (status, id);
CREATE INDEX jobs_queue ON jobs (attempts, id) WHERE status = 'queued';
CREATE INDEX jobs_queued_path ON jobs (source_path, id) WHERE status IN ('queued', 'running') AND source_path IS NOT NULL;
CREATE INDEX jobs_failed_path ON jobs (source_path, id) WHERE status = 'failed' AND source_path IS NOT NULL;
CREATE INDEX jobs_new_notes ON jobs (id)
  WHERE status = 'queued' AND attempts = 0 AND staged IS NULL AND staged_at IS NULL;
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX jobs_part_of ON jobs (part_of) WHERE part_of IS NOT NULL;
CREATE INDEX jobs_staged ON jobs (staged) WHERE staged IS NOT NULL;
CREATE INDEX jobs_done ON jobs (COALESCE(finished_at, created_at)) WHERE status = 'done';
CREATE SEQUENCE engine_numbers AS int CYCLE;

-- Kept files that lost their last document, by the hash of their content. kb removes them after the transaction.
CREATE TABLE unneeded_files (content_hash text PRIMARY KEY);

-- The number of changes to chunks.
CREATE TABLE generation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  number bigint NOT NULL
);
INSERT INTO generation (number) VALUES (0);

-- The model that computed the vectors, its folder, and the table of vectors in use.
CREATE TABLE vector_space (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  dimensions int NOT NULL,
  model text NOT NULL,
  precision text NOT NULL,
  digest text NOT NULL,
  query_prefix text NOT NULL,
  passage_prefix text NOT NULL,
  folder text,
  kept_in text NOT NULL DEFAULT 'vectors_a' CHECK (kept_in IN ('vectors_a', 'vectors_b'))
);

CREATE TABLE vector_precisions (
  precision text PRIMARY KEY,
  vectors bigint NOT NULL
);
COMMENT ON TABLE vector_precisions
  IS 'how many vectors were made in each precision since these are in use, those of deleted chunks included';

-- Two tables of vectors: `vector_space` names the one in use. The other one can be filled with vectors of another
-- model. To switch, kb changes one row: no search waits, and each uses the vectors of its own snapshot. The columns
-- have any length, and the index of each table has the length of its model.
CREATE TABLE vectors_a (
  chunk_id bigint NOT NULL,
  document_id bigint NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (chunk_id, document_id),
  FOREIGN KEY (chunk_id, document_id) REFERENCES chunks (id, document_id) ON DELETE CASCADE
);
CREATE TABLE vectors_b (
  chunk_id bigint NOT NULL,
  document_id bigint NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (chunk_id, document_id),
  FOREIGN KEY (chunk_id, document_id) REFERENCES chunks (id, document_id) ON DELETE CASCADE
);

-- Earlier versions of documents, each valid from `updated_at` or `created_at` to `until`. A version without a content
-- has the present content of its document.
CREATE TABLE versions (
  document_id bigint NOT NULL,
  number int NOT NULL,
  title text NOT NULL,
  source_path text COLLATE "C",
  doc_type text COLLATE "C" NOT NULL,
  content_hash text NOT NULL,
  tags text[] NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3),
  until timestamptz(3) NOT NULL,
  date text,
  own_day text COLLATE "C",
  own_tags text[] NOT NULL,
  part_of bigint,
  uploaded_as text,
  title_given boolean NOT NULL,
  changed_by text,
  changed_with text,
  changed_why text,
  content_id bigint,
  source text,
  replaces bigint,
  omitted text NOT NULL DEFAULT '{}',
  operation bigint,
  language text COLLATE "C",
  PRIMARY KEY (document_id, number)
);
CREATE INDEX versions_operation ON versions (operation) WHERE operation IS NOT NULL;
CREATE INDEX versions_source_path ON versions (source_path) WHERE doc_type <> 'note';
CREATE INDEX versions_replaces ON versions (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX versions_until ON versions (until);
CREATE INDEX versions_file ON versions (content_hash) WHERE doc_type <> 'note';
CREATE INDEX versions_content ON versions (content_id) WHERE content_id IS NOT NULL;

-- The chunks of earlier versions, compressed. Only a copy of another database has vectors here.
CREATE TABLE former_contents (
  id bigint GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  chunks bytea NOT NULL,
  vectors bytea,
  PRIMARY KEY (id, document_id)
);
ALTER TABLE former_contents ALTER chunks SET STORAGE EXTERNAL, ALTER vectors SET STORAGE EXTERNAL;
CREATE INDEX former_contents_document ON former_contents (document_id);

-- The second set of vectors: its model, its state, the engine that computes it, and that engine's last sign of life.
CREATE TABLE second_space (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  state text NOT NULL,
  dimensions int NOT NULL,
  model text NOT NULL,
  precision text NOT NULL,
  digest text NOT NULL,
  query_prefix text NOT NULL,
  passage_prefix text NOT NULL,
  folder text,
  run_by int,
  heartbeat_at timestamptz(3)
);

-- Deleted documents that can be restored. `number` is their last version.
CREATE TABLE bin (
  document_id bigint PRIMARY KEY,
  number int NOT NULL,
  part_of bigint,
  deleted_at timestamptz(3) NOT NULL,
  deleted_by text,
  deleted_with text,
  deleted_why text,
  operation bigint
);
CREATE INDEX bin_operation ON bin (operation) WHERE operation IS NOT NULL;
CREATE INDEX bin_deleted_at ON bin (deleted_at);
CREATE INDEX bin_part_of ON bin (part_of) WHERE part_of IS NOT NULL;

-- The time from which all earlier versions exist (NULL: from the beginning), and the bytes of their contents.
CREATE TABLE history (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  begins timestamptz(3),
  size bigint NOT NULL
);
INSERT INTO history (begins, size) VALUES (NULL, 0);

-- Changes that belong together and that an undo reverts together.
CREATE TABLE operations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text COLLATE "C" NOT NULL UNIQUE,
  at timestamptz(3) NOT NULL,
  by_key text,
  client text
);

-- Synced folders, and the files that syncs leave out.
CREATE TABLE folders (
  prefix text COLLATE "C" PRIMARY KEY,
  machine text NOT NULL,
  host text NOT NULL,
  path text NOT NULL,
  mounts text NOT NULL,
  at timestamptz(3) NOT NULL
);
CREATE TABLE left_out (source_path text COLLATE "C" PRIMARY KEY);

-- The audit log, without content.
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz(3) NOT NULL DEFAULT now_ms(),
  by_key text,
  client text,
  action text NOT NULL,
  document_id bigint,
  job_id bigint,
  key text
);
CREATE INDEX audit_document ON audit (document_id) WHERE document_id IS NOT NULL;
CREATE INDEX audit_by_key ON audit (by_key) WHERE by_key IS NOT NULL;

-- Uploaded files: files of waiting jobs, and kept files. Several names can share one content.
CREATE TABLE blob_contents (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  size bigint NOT NULL
);
CREATE TABLE blob_blocks (
  content_id bigint NOT NULL REFERENCES blob_contents (id) ON DELETE CASCADE,
  number int NOT NULL,
  block bytea NOT NULL,
  PRIMARY KEY (content_id, number)
);
ALTER TABLE blob_blocks ALTER block SET STORAGE EXTERNAL;
CREATE TABLE blobs (
  name text COLLATE "C" PRIMARY KEY,
  content_id bigint NOT NULL REFERENCES blob_contents (id),
  created_at timestamptz(3) NOT NULL DEFAULT now_ms()
);
CREATE INDEX blobs_content ON blobs (content_id);

-- The id that a place for files outside the database must name, and whether files are outside.
CREATE TABLE blob_place (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id text NOT NULL,
  is_outside boolean NOT NULL
);
INSERT INTO blob_place (id, is_outside) VALUES (gen_random_uuid()::text, false);

-- Keys with rights, by their digests.
CREATE TABLE keys (
  name text COLLATE "C" PRIMARY KEY,
  may text NOT NULL,
  tags text[] NOT NULL,
  folder text,
  digest text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  used_at timestamptz(3),
  former_digest text,
  former_until timestamptz(3)
);
