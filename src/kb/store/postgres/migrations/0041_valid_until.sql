-- The last day on which a note is true.
ALTER TABLE documents ADD COLUMN valid_until text;
ALTER TABLE versions ADD COLUMN valid_until text;
ALTER TABLE jobs ADD COLUMN valid_until text;
