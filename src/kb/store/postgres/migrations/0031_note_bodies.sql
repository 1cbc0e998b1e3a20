-- The SHA-256 of each note's text without the title, date and tags of its front matter, if it differs from its
-- content_hash: kb stores the same fact once. See `body_hash` in kb/ingest/draft.py.
CREATE TABLE note_bodies (
  document_id bigint PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
  body_hash text NOT NULL
);
CREATE INDEX note_bodies_hash ON note_bodies (body_hash);
