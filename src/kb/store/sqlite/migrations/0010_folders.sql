-- The notes of each folder that a path names, by id: a short one is read in its neighbours' context; see context.py.
CREATE INDEX documents_folder ON documents (rtrim(source_path, replace(source_path, '/', '')))
  WHERE doc_type = 'note' AND instr(source_path, '/') AND length(source_path) <= 500;
