-- Pairs of contents that a person dismissed as duplicates.

-- name: select_dismissed
-- Select all pairs.
SELECT one_hash, other_hash FROM dismissed_duplicates

-- name: dismiss
-- Add a pair.
INSERT INTO dismissed_duplicates (one_hash, other_hash) VALUES (:one, :other) ON CONFLICT DO NOTHING

-- name: show_again
-- Remove a pair.
DELETE FROM dismissed_duplicates WHERE one_hash = :one AND other_hash = :other
