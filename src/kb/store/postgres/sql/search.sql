-- The moments of search. Full text is in words.py.

-- name: select_generation
-- How often chunks were written.
SELECT number FROM generation

-- name: select_change
-- The number of the last transaction that changed something: one after the other, so a later change has a later one.
SELECT xmin::text::bigint FROM generation

-- name: note_change
-- This transaction is that one, if it changed something.
UPDATE generation SET number = number WHERE pg_current_xact_id_if_assigned() IS NOT NULL

-- name: select_identity
-- The server and its replicas have the one, the database on them the other.
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()

-- name: update_generation
-- Chunks were written: a word to those who keep some in memory.
WITH next AS (UPDATE generation SET number = number + 1 RETURNING number)
SELECT pg_notify('kb_generation', number::text) FROM next
