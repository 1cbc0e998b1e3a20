-- The limit of a key may be only one of what it writes.
ALTER TABLE keys ADD COLUMN reads_all boolean NOT NULL DEFAULT false;
