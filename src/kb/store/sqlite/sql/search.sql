-- The changes that a search must see. The module index.py has the full text.

-- name: update_generation
-- Set the number of the snapshot that shows the chunks as they are now.
UPDATE generation SET number = ?
