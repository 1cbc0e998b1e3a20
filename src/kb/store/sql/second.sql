-- The second set of vectors. See reembed_vectors.py.

-- name: select_second
-- Select the state and the model of the second set.
SELECT
  state, dimensions, model, precision, digest, COALESCE(query_prefix, ''), COALESCE(passage_prefix, ''), folder
FROM second_space

-- name: update_state
-- Set the state of the second set.
UPDATE second_space SET state = :state
