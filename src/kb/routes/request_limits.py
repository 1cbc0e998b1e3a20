"""Limits of the size of requests, which hold before anything is parsed."""

from typing import Final

from kb.api.errors import Invalid
from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS
from kb.asgi.body_limits import JSONLimits
from kb.settings import Settings

SMALL_BODY: Final = 256 << 10
BYTES_OF_CHARACTER: Final = 12
"""The maximum length of one character in JSON: two escapes of six bytes."""

FILTERS: Final = 3
"""The maximum number of tag lists in a request."""

MAX_TEXTS: Final = 1000 + (FILTERS + 1) * MAX_TAGS
JSON_LIMITS: Final = JSONLimits(MAX_TEXTS, other=SMALL_BODY // 4 + 8 * MAX_TEXTS)
"""The limits of a JSON body. Slightly too many tags still pass, so that `check_tags` can name its limit."""


def most_bytes(settings: Settings, prefix: str, path: str, is_form: bool) -> int:
    """Return the maximum size in bytes of a body sent to `path`."""
    if path == f"{prefix}/jobs" and is_form:
        return settings.max_upload_mb << 20
    if path in (f"{prefix}/jobs", f"{prefix}/links") or path.startswith(f"{prefix}/notes/"):
        return SMALL_BODY + settings.max_note_chars * BYTES_OF_CHARACTER
    return SMALL_BODY + FILTERS * MAX_TAGS * MAX_TAG_CHARS


def check_parameters(query: bytes) -> None:
    """Refuse a query with too many parameters, before parsing them.

    Raises:
        Invalid: the query has more parameters than any call accepts.
    """
    if query.count(b"&") > 100 + (FILTERS + 1) * MAX_TAGS:
        raise Invalid("query: it has more parameters than any call accepts.")


def too_many_values() -> Invalid:
    """Return the error for a body that `JSON_LIMITS` refuses."""
    return Invalid("body: it is not JSON in UTF-8, or it has more names and values than any call accepts.")
