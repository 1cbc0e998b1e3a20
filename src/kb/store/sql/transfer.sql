-- A database in an export, and out of one.

-- name: select_rows
-- The next rows of a table in the order of its keys, which may be one and the same.
SELECT {columns} FROM {table} WHERE ({first}, {second}) > (:first, :second) ORDER BY {first}, {second} LIMIT :limit

-- name: delete_rows
-- All rows of a table.
DELETE FROM {table}

-- name: select_beginning
-- From when on history is whole.
SELECT begins FROM history

-- name: set_beginning
-- Likewise.
UPDATE history SET begins = CAST(:begins AS $timestamp)

-- name: mark_unfinished
-- What an import writes is not whole yet.
CREATE TABLE IF NOT EXISTS unfinished_import (begun $timestamp NOT NULL)

-- name: unmark_unfinished
-- It is whole.
DROP TABLE IF EXISTS unfinished_import
