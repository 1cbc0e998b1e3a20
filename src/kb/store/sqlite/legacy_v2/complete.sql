-- From version 2, after kb 3 has declared all tables. Fill the tables that version 2 did not have, and the full text.

INSERT INTO sections (id, document_id, header, heading, segmented)
  SELECT section_id, document_id, title, '[]', segmented(title)
  FROM chunks JOIN documents ON documents.id = document_id WHERE chunks.id = section_id;
INSERT INTO unnamed SELECT id FROM documents;
INSERT INTO reanalysis SELECT 1, 0 WHERE EXISTS (SELECT 1 FROM chunks);
INSERT INTO vector_precisions SELECT 'fp32', count(*) FROM chunks HAVING count(*) > 0;
INSERT INTO generation VALUES (1, 0);

-- Version 2 kept no history.
INSERT INTO history
  SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM documents) THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END, 0;

INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);
INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild');
