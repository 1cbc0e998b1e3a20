-- The links in documents.

-- name: keys
-- The keys of an array.
SELECT value AS wanted_key FROM json_each(?)

-- name: values
-- The values of an array in JSON.
json_each(?)

-- name: then_join
-- Let SQLite begin on the left.
CROSS JOIN

-- name: bytewise
-- Compare texts byte by byte.
BINARY
