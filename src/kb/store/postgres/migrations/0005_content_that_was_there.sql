-- Whether a job's document held what was sent already.

ALTER TABLE jobs ADD existed boolean NOT NULL DEFAULT false;
