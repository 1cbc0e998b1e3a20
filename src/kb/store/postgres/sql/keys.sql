-- Keys with rights.

-- name: select_keys
-- Select all keys.
SELECT
  name, may, tags, folder, digest, created_at, used_at, former_digest, former_until, expires_at, per_minute, reads_all
FROM keys

-- name: insert_key
-- Insert a key, unless its name is in use.
INSERT INTO keys (
  name, may, tags, folder, digest, created_at, used_at, former_digest, former_until, expires_at, per_minute, reads_all
)
VALUES (
  %(name)s, %(right)s, %(tags)s, %(folder)s, %(digest)s, %(created_at)s, %(used_at)s, %(former_digest)s,
  %(former_until)s, %(expires_at)s, %(per_minute)s, %(reads_all)s
)
ON CONFLICT (name) DO NOTHING

-- name: rotate_key
-- Give a key another digest, and keep the earlier one for a time. Change nothing if the key has changed in between.
UPDATE keys SET digest = %(digest)s, former_digest = %(former_digest)s, former_until = %(former_until)s
WHERE name = %(name)s AND digest = %(before)s

-- name: delete_key
-- Delete a key.
DELETE FROM keys WHERE name = %s

-- name: set_used
-- Record the use of a key. Another engine may have recorded a later use.
UPDATE keys SET used_at = GREATEST(used_at, %s) WHERE name = %s
