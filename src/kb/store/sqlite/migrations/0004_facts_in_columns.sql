-- A file's name, whether a title was given and how deep a file was inside others get columns of their own.

-- Not `filename`: a database of version 2 may have a column of that name, which cannot be written where it stands for
-- the title.
ALTER TABLE documents ADD COLUMN uploaded_as TEXT;
ALTER TABLE documents ADD COLUMN title_given INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_done ON jobs (COALESCE(finished_at, created_at)) WHERE status = 'done';

-- The name that the last of its jobs had.
UPDATE documents SET uploaded_as = (
    SELECT filename FROM jobs WHERE document_id = documents.id AND filename <> '' ORDER BY id DESC LIMIT 1
  );

-- The chunks of a note stand under its title if it was given one; those of a file always do, but its jobs know.
UPDATE documents SET title_given = CASE doc_type
    WHEN 'note' THEN EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id AND header <> '')
    ELSE EXISTS (SELECT 1 FROM jobs WHERE document_id = documents.id AND jobs.title = documents.title)
  END;

-- The staged file's name ended in it.
UPDATE jobs SET depth = CAST(substr(staged, instr(staged, '-') + 1) AS INTEGER)
  WHERE staged IS NOT NULL AND instr(staged, '-') > 0;

-- Nothing asks for the jobs of a document any more.
DROP INDEX jobs_document;

-- What the model reads before each query and passage; NULL is nothing.
ALTER TABLE vector_space ADD COLUMN query_prefix TEXT;
ALTER TABLE vector_space ADD COLUMN passage_prefix TEXT;
