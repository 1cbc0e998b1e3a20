-- Whether a job's document held what was sent already.

ALTER TABLE jobs ADD COLUMN existed INTEGER NOT NULL DEFAULT 0;
