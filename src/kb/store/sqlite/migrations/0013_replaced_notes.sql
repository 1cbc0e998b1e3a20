-- Where a note comes from, in the words of who added it, and the document in whose place it stands.

ALTER TABLE documents ADD COLUMN source TEXT;
ALTER TABLE documents ADD COLUMN replaces INTEGER;
CREATE INDEX documents_replaces ON documents (replaces) WHERE replaces IS NOT NULL;

ALTER TABLE jobs ADD COLUMN source TEXT;
ALTER TABLE jobs ADD COLUMN replaces INTEGER;

ALTER TABLE versions ADD COLUMN source TEXT;
ALTER TABLE versions ADD COLUMN replaces INTEGER;
CREATE INDEX versions_replaces ON versions (replaces) WHERE replaces IS NOT NULL;
