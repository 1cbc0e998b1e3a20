-- Katakana and hiragana are one form now, ґ is г, and Node.js is also nodejs, so that kb indexes all documents and their
-- names again.
DELETE FROM words_backfill;
INSERT INTO words_backfill SELECT 0 WHERE EXISTS (SELECT 1 FROM documents);
INSERT INTO unnamed SELECT id FROM documents ON CONFLICT DO NOTHING;
