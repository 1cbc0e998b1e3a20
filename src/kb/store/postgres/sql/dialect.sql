-- Words of PostgreSQL's in the statements of both stores.

-- name: timestamp
-- The type of a moment.
timestamptz

-- name: now
-- The time.
now_ms()

-- name: expiry
-- The moment before which what is kept for :days has expired: by kb's own time, and by the server's.
LEAST(now_ms(), CAST(:expiry AS timestamptz)) - make_interval(days => CAST(:days AS integer))

-- name: in_ids
-- That an id is among :ids.
= ANY(:ids)

-- name: greatest
-- The greater one of two, none of which is NULL.
GREATEST

-- name: tags
-- The tags of a document, in alphabetical order.
ARRAY(SELECT tag FROM document_tags WHERE document_id = documents.id ORDER BY tag)

-- name: date
-- The columns of a document's own date.
date, own_day

-- name: seconds_ago
-- The moment :seconds ago.
now_ms() - make_interval(secs => :seconds)

-- name: after_until
-- The moment after a version went.
until + interval '1 millisecond'
