-- Texts are indexed in one form of more letters and digits, and with words without their signs, so that kb indexes all
-- documents and their names again, by ascending id: the last document that is done.
CREATE TABLE words_backfill (document_id bigint NOT NULL);
INSERT INTO words_backfill SELECT 0 WHERE EXISTS (SELECT 1 FROM documents);
INSERT INTO unnamed SELECT id FROM documents ON CONFLICT DO NOTHING;
