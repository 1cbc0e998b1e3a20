-- Uploaded files: those that wait for their job, and those that are kept. Several names may have one content.
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

-- What a place for files outside the database must name to be this database's, and whether there is one.
CREATE TABLE blob_place (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id text NOT NULL,
  is_outside boolean NOT NULL
);
INSERT INTO blob_place (id, is_outside) VALUES (gen_random_uuid()::text, false);
COMMENT ON COLUMN jobs.staged_at IS 'the data directory that has the staged file, until its engine brings it here';

-- The keys that have names, by their digests.
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
