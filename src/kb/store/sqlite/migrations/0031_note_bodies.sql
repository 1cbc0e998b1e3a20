-- The SHA-256 of each note's text without the title, date and tags of its front matter, if it differs from its
-- content_hash: kb does not store the same fact twice. See kb/documents/save.py.
CREATE TABLE note_bodies (
  document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
  body_hash TEXT NOT NULL
);
CREATE INDEX note_bodies_hash ON note_bodies (body_hash);
