-- Grants of access to programs, with the digests of their codes and tokens.

-- name: select_grants
-- Select all grants, the oldest first.
SELECT
  id, family, key_name, key_digest, client_id, client_name, scopes, resource, redirect_uri, challenge, created_at,
  next_digest, until, used_at, access_digest, access_scopes, access_until
FROM grants ORDER BY created_at, id

-- name: insert_grant
-- Insert a grant whose code is not exchanged yet.
INSERT INTO grants (
  id, family, key_name, key_digest, client_id, client_name, scopes, resource, redirect_uri, challenge, created_at,
  next_digest, until
)
VALUES (
  :id, :family, :key_name, :key_digest, :client_id, :client_name, :scopes, :resource, :redirect_uri, :challenge,
  :created_at, :next_digest, :until
)

-- name: exchange
-- Write new tokens, unless others were written in between.
UPDATE grants SET
  next_digest = :next_digest, until = :until, access_digest = :access_digest, access_scopes = :access_scopes,
  access_until = :access_until
WHERE id = :id AND next_digest = :before RETURNING id

-- name: set_used
-- Record the use of a grant.
UPDATE grants SET used_at = :at WHERE id = :id

-- name: delete_grant
-- Delete a grant.
DELETE FROM grants WHERE id = :id

-- name: delete_of_key
-- Delete the grants of a key.
DELETE FROM grants WHERE key_name = :key_name

-- name: expire
-- Delete grants that nobody can use any more.
DELETE FROM grants WHERE until <= :now
