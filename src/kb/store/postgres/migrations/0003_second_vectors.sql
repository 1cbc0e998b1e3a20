-- Two tables of vectors: `vector_space` says which is in use. The other one may be filled with those of another model, and a
-- switch is a row that changes: no search waits for it, and each sees the vectors of its own moment. The columns are of any
-- length; the index of each table is of one, and is made for the model.

CREATE TABLE IF NOT EXISTS vectors (
  chunk_id bigint NOT NULL,
  document_id bigint NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (chunk_id, document_id),
  FOREIGN KEY (chunk_id, document_id) REFERENCES chunks (id, document_id) ON DELETE CASCADE
);
ALTER TABLE vectors RENAME TO vectors_a;
ALTER INDEX vectors_pkey RENAME TO vectors_a_pkey;
ALTER INDEX IF EXISTS vectors_nearest RENAME TO vectors_a_nearest;
ALTER TABLE vectors_a ALTER embedding TYPE vector;
CREATE TABLE vectors_b (
  chunk_id bigint NOT NULL,
  document_id bigint NOT NULL,
  embedding vector NOT NULL,
  PRIMARY KEY (chunk_id, document_id),
  FOREIGN KEY (chunk_id, document_id) REFERENCES chunks (id, document_id) ON DELETE CASCADE
);
ALTER TABLE vector_space ADD kept_in text NOT NULL DEFAULT 'vectors_a' CHECK (kept_in IN ('vectors_a', 'vectors_b'));

-- What the vectors beside those in use are of, what is being done with them, which engine makes them, and when it last said so.
CREATE TABLE second_space (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  state text NOT NULL,
  dimensions int NOT NULL,
  model text NOT NULL,
  precision text NOT NULL,
  digest text NOT NULL,
  query_prefix text NOT NULL,
  passage_prefix text NOT NULL,
  folder text,
  run_by int,
  heartbeat_at timestamptz(3)
);

-- The other vectors of former contents.
CREATE TABLE second_former (
  content_id bigint NOT NULL,
  document_id bigint NOT NULL,
  vectors bytea,
  PRIMARY KEY (content_id, document_id),
  FOREIGN KEY (content_id, document_id) REFERENCES former_contents (id, document_id) ON DELETE CASCADE
);
ALTER TABLE second_former ALTER vectors SET STORAGE EXTERNAL;
