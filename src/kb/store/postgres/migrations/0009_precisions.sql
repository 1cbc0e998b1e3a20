-- Vectors of several precisions are of one space. All that are there are of the one that was recorded.

CREATE TABLE vector_precisions (
  precision text PRIMARY KEY,
  vectors bigint NOT NULL
);
COMMENT ON TABLE vector_precisions
  IS 'how many vectors were made in each precision since these are in use, those of deleted chunks included';
INSERT INTO vector_precisions
SELECT precision, chunks FROM vector_space, statistics WHERE chunks > 0;
