-- Texts are indexed in one form of more letters and digits, and with words without their signs, so that kb indexes all
-- documents and their names again.
DELETE FROM reanalysis;
INSERT INTO reanalysis SELECT 1, 0 WHERE EXISTS (SELECT 1 FROM documents);
INSERT OR IGNORE INTO unnamed SELECT id FROM documents;
