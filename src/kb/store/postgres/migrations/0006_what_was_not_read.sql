-- What of a file was not read, by kind, as a JSON object.

ALTER TABLE documents ADD omitted text NOT NULL DEFAULT '{}';
ALTER TABLE versions ADD omitted text NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD omitted text NOT NULL DEFAULT '{}';
