-- SQLite's words for the statements of both stores.

-- name: timestamp
-- The type of a time.
text

-- name: now
-- kb's own time.
kb_now()

-- name: expiry
-- The time before which rows expire that are kept for :days.
strftime('%Y-%m-%d %H:%M:%f', :expiry, '-' || :days || ' days')

-- name: in_ids
-- An id is among :ids.
IN (SELECT value FROM json_each(:ids))

-- name: greatest
-- The greater of two values that are not NULL.
max

-- name: tags
-- The tags of a document, in alphabetical order.
(SELECT json_group_array(name ORDER BY name) FROM document_tags JOIN tags ON tags.id = tag_id WHERE document_id = documents.id)

-- name: date
-- The columns of a document's own date.
date

-- name: seconds_ago
-- The time :seconds ago.
strftime('%Y-%m-%d %H:%M:%f', kb_now(), format('-%.3f seconds', :seconds))

-- name: after_until
-- The time just after the end of a version.
strftime('%Y-%m-%d %H:%M:%f', until, '+0.001 seconds')
