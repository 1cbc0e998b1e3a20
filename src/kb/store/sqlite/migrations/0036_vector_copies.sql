-- Copies of vectors were faster to read than chunks_vec. The next migration makes that table as fast.
DROP TRIGGER chunks_ad_vectors;
-- DROP TABLE alone would keep every page in memory, for a rollback of the statement.
DELETE FROM vector_copies;
DROP TABLE vector_copies;
-- A trigger instead of foreign keys, which another program may have switched off. A code must never outlive its vector.
CREATE TRIGGER chunks_ad_vectors AFTER DELETE ON chunks BEGIN
  DELETE FROM vector_codes WHERE chunk_id = old.id;
END;
