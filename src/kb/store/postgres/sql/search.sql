-- The changes that a search must see. The module words.py has the full text.

-- name: select_generation
-- Select the number of changes to chunks.
SELECT number FROM generation

-- name: select_change
-- Select the number of the last transaction that changed something. Changes run one after the other, so a later one has
-- a higher number.
SELECT xmin::text::bigint FROM generation

-- name: note_change
-- Mark this transaction as the last change, if it changed something.
UPDATE generation SET number = number WHERE pg_current_xact_id_if_assigned() IS NOT NULL

-- name: select_identity
-- Select the identity of the server, which its replicas share, and of the database on it.
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()

-- name: update_generation
-- Count a change to chunks, and notify the engines that keep chunks in memory.
WITH next AS (UPDATE generation SET number = number + 1 RETURNING number)
SELECT pg_notify('kb_generation', number::text) FROM next
