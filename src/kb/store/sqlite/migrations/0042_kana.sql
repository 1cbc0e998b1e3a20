-- Katakana and hiragana are one form now, ґ is г, and Node.js is also nodejs, so that kb indexes all documents and their
-- names again.
DELETE FROM reanalysis;
INSERT INTO reanalysis SELECT 1, 0 WHERE EXISTS (SELECT 1 FROM documents);
INSERT OR IGNORE INTO unnamed SELECT id FROM documents;
