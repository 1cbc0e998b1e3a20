-- Pairs of contents that a person called no duplicates, in ascending order of their hashes. A changed document has another
-- content, so that kb shows it again.
CREATE TABLE dismissed_duplicates (
  one_hash TEXT NOT NULL,
  other_hash TEXT NOT NULL,
  PRIMARY KEY (one_hash, other_hash)
) WITHOUT ROWID;
