-- Vectors of several precisions are of one space. All that are there are of the one that was recorded.

CREATE TABLE vector_precisions (
  precision TEXT PRIMARY KEY,
  vectors INTEGER NOT NULL
);
INSERT INTO vector_precisions
SELECT COALESCE((SELECT precision FROM vector_space), 'fp32'), count(*) FROM chunks HAVING count(*) > 0;
