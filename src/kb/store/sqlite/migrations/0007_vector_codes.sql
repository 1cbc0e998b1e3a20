-- What makes a search over many vectors fast, made from chunks_vec when there are many; see vector_codes.py.

-- The mean that the codes are centred on. Without it there are no codes.
CREATE TABLE vector_mean (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mean BLOB NOT NULL
);
CREATE TABLE vector_codes (
  chunk_id INTEGER PRIMARY KEY,
  code BLOB NOT NULL
);
-- The vectors once more, where one of them is found in a hundredth of the time.
CREATE TABLE vector_copies (
  chunk_id INTEGER PRIMARY KEY,
  vector BLOB NOT NULL
);
-- Not by foreign keys, which another program may have switched off: a copy must never outlive its vector.
CREATE TRIGGER chunks_ad_vectors AFTER DELETE ON chunks BEGIN
  DELETE FROM vector_codes WHERE chunk_id = old.id;
  DELETE FROM vector_copies WHERE chunk_id = old.id;
END;
