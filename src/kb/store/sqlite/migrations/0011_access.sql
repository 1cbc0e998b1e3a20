-- What the key is limited to that a job was sent with, and who did what.

ALTER TABLE jobs ADD COLUMN limits TEXT;

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
