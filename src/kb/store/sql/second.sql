-- The vectors beside those in use; see reembed_vectors.py.

-- name: select_second
-- What they are of.
SELECT
  state, dimensions, model, precision, digest, COALESCE(query_prefix, ''), COALESCE(passage_prefix, ''), folder
FROM second_space

-- name: update_state
-- What is being done with them.
UPDATE second_space SET state = :state
