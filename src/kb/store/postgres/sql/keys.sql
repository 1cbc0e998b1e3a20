-- The keys that have names.

-- name: select_keys
-- All of them.
SELECT name, may, tags, folder, digest, created_at, used_at, former_digest, former_until FROM keys

-- name: insert_key
-- A new key; nothing if there is one of its name.
INSERT INTO keys (name, may, tags, folder, digest, created_at, used_at, former_digest, former_until)
VALUES (
  %(name)s, %(right)s, %(tags)s, %(folder)s, %(digest)s, %(created_at)s, %(used_at)s, %(former_digest)s, %(former_until)s
)
ON CONFLICT (name) DO NOTHING

-- name: rotate_key
-- A key is opened by another text, and for a while by the former one; nothing if that is not what opened it.
UPDATE keys SET digest = %(digest)s, former_digest = %(former_digest)s, former_until = %(former_until)s
WHERE name = %(name)s AND digest = %(before)s

-- name: delete_key
-- A key goes.
DELETE FROM keys WHERE name = %s

-- name: set_used
-- A key was used; another engine may have seen a later use.
UPDATE keys SET used_at = GREATEST(used_at, %s) WHERE name = %s
