-- Export and import of a database.

-- name: select_rows
-- Select the next rows of a table in the order of its two keys, which may be the same column.
SELECT {columns} FROM {table} WHERE ({first}, {second}) > (:first, :second) ORDER BY {first}, {second} LIMIT :limit

-- name: delete_rows
-- Delete all rows of a table.
DELETE FROM {table}

-- name: select_beginning
-- Select the time from which history is complete.
SELECT begins FROM history

-- name: set_beginning
-- Set the time from which history is complete.
UPDATE history SET begins = CAST(:begins AS $timestamp)

-- name: mark_unfinished
-- Mark the import as unfinished.
CREATE TABLE IF NOT EXISTS unfinished_import (begun $timestamp NOT NULL)

-- name: unmark_unfinished
-- Mark the import as finished.
DROP TABLE IF EXISTS unfinished_import
