-- The links in documents.

-- name: keys
-- The keys of an array.
SELECT unnest(CAST(? AS text[])) AS wanted_key

-- name: values
-- The values of an array in JSON.
jsonb_array_elements(CAST(? AS jsonb))

-- name: then_join
-- Let the planner choose the side to begin on.
JOIN

-- name: bytewise
-- Compare texts byte by byte.
"C"
