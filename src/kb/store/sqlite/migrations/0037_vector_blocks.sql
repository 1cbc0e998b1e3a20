-- Vectors in blocks of eight instead of 1024, so that SQLite reads a vector with a few pages. The blocks take the pages
-- that the migration before freed. The names of the columns of chunks_vec, and its declaration with the new size, are
-- filled in.

-- vec0 does not rename its tables. Triggers of another program go on to write to chunks_vec.
PRAGMA legacy_alter_table = ON;
ALTER TABLE chunks_vec RENAME TO former_vec;
ALTER TABLE chunks_vec_info RENAME TO former_vec_info;
ALTER TABLE chunks_vec_chunks RENAME TO former_vec_chunks;
ALTER TABLE chunks_vec_rowids RENAME TO former_vec_rowids;
ALTER TABLE chunks_vec_vector_chunks00 RENAME TO former_vec_vector_chunks00;
PRAGMA legacy_alter_table = OFF;
{vectors};
-- In the order of the old blocks: to sort them, SQLite would hold all vectors in memory.
INSERT INTO chunks_vec ({key}, {embedding}) SELECT {key}, {embedding} FROM former_vec;
-- DROP TABLE alone would keep every page in memory, for a rollback of the statement.
DELETE FROM former_vec_vector_chunks00;
DROP TABLE former_vec;
