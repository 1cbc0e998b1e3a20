-- What of a file was not read, by kind, as a JSON object.

ALTER TABLE documents ADD COLUMN omitted TEXT NOT NULL DEFAULT '{}';
ALTER TABLE versions ADD COLUMN omitted TEXT NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN omitted TEXT NOT NULL DEFAULT '{}';
