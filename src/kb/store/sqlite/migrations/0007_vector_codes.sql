-- What makes a search over many vectors fast, made from chunks_vec when there are many; see vector_codes.py.

-- The mean that the codes are centred on. Without it there are no codes.
CREATE TABLE vector_mean (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  mean BLOB NOT NULL
);
CREATE TABLE vector_codes (
  chunk_id INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
  code BLOB NOT NULL
);
-- The vectors once more, where one of them is found in a hundredth of the time.
CREATE TABLE vector_copies (
  chunk_id INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
  vector BLOB NOT NULL
);
