-- PostgreSQL's words for the statements of both stores.

-- name: timestamp
-- The type of a time.
timestamptz

-- name: now
-- The current time.
now_ms()

-- name: expiry
-- The time before which rows expire that are kept for :days, by kb's own time and by the server's.
LEAST(now_ms(), CAST(:expiry AS timestamptz)) - make_interval(days => CAST(:days AS integer))

-- name: in_ids
-- An id is among :ids.
= ANY(:ids)

-- name: greatest
-- The greater of two values that are not NULL.
GREATEST

-- name: tags
-- The tags of a document, in alphabetical order.
ARRAY(SELECT tag FROM document_tags WHERE document_id = documents.id ORDER BY tag)

-- name: date
-- The columns of a document's own date.
date, own_day

-- name: seconds_ago
-- The time :seconds ago.
now_ms() - make_interval(secs => :seconds)

-- name: after_until
-- The time just after the end of a version.
until + interval '1 millisecond'
