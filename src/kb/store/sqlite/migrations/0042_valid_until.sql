-- The last day on which a note is true.
ALTER TABLE documents ADD COLUMN valid_until TEXT;
ALTER TABLE versions ADD COLUMN valid_until TEXT;
ALTER TABLE jobs ADD COLUMN valid_until TEXT;
