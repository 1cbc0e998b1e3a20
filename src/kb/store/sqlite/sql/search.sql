-- The moments of search. Full text is in index.py.

-- name: update_generation
-- The chunks were changed: which snapshot of the vectors shows it.
UPDATE generation SET number = ?
