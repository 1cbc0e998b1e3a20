-- A second set of vectors beside those in use.

ALTER TABLE vector_space ADD COLUMN folder TEXT;

CREATE TABLE second_space (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  state TEXT NOT NULL,
  dimensions INTEGER NOT NULL,
  model TEXT NOT NULL,
  precision TEXT NOT NULL,
  digest TEXT NOT NULL,
  query_prefix TEXT,
  passage_prefix TEXT,
  folder TEXT
);
CREATE TABLE second_vectors (
  chunk_id INTEGER PRIMARY KEY,
  vector BLOB NOT NULL
);
CREATE TABLE second_mean (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mean BLOB NOT NULL
);
CREATE TABLE second_codes (
  chunk_id INTEGER PRIMARY KEY,
  code BLOB NOT NULL
);
CREATE TABLE second_former (
  content_id INTEGER PRIMARY KEY,
  vectors BLOB NOT NULL
);
CREATE TRIGGER chunks_ad_second AFTER DELETE ON chunks BEGIN
  DELETE FROM second_vectors WHERE chunk_id = old.id;
  DELETE FROM second_codes WHERE chunk_id = old.id;
END;
CREATE TRIGGER former_contents_ad_second AFTER DELETE ON former_contents BEGIN
  DELETE FROM second_former WHERE content_id = old.id;
END;
