"""What a request may ask for; a limit that is a setting is named when it is met."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kb.api.errors import Invalid, TooLarge
from kb.api.models import DEFAULT_TOP, MAX_TAG_CHARS, MAX_TAGS
from kb.asgi.body_limits import JSONLimits
from kb.settings import Settings

SMALL_BODY: Final = 256 << 10
BYTES_OF_CHARACTER: Final = 12
"""The most that JSON takes for one: two escapes of six."""

FILTERS: Final = 3
"""How many lists of tags a request may have."""

MAX_TEXTS: Final = 1000 + (FILTERS + 1) * MAX_TAGS
JSON_LIMITS: Final = JSONLimits(MAX_TEXTS, other=SMALL_BODY // 4 + 8 * MAX_TEXTS)
"""What a body in JSON may hold; that there are too many tags is said by another limit, if they are a few."""


def most_bytes(settings: Settings, prefix: str, path: str, is_form: bool) -> int:
    """Return how large a body may be that is sent to `path`."""
    if path == f"{prefix}/jobs" and is_form:
        return settings.max_upload_mb << 20
    if path == f"{prefix}/jobs" or path.startswith(f"{prefix}/notes/"):
        return SMALL_BODY + settings.max_note_chars * BYTES_OF_CHARACTER
    return SMALL_BODY + FILTERS * MAX_TAGS * MAX_TAG_CHARS


def check_parameters(query: bytes) -> None:
    """Refuse a query of too many parameters, before each of them is looked at.

    Raises:
        Invalid: there are more than any call takes.
    """
    if query.count(b"&") > 100 + (FILTERS + 1) * MAX_TAGS:
        raise Invalid("query: it holds more parameters than any call takes.")


def too_many_values() -> Invalid:
    """Return what is said of a body that `JSON_LIMITS` do not allow."""
    return Invalid("body: it is no JSON in UTF-8, or holds more names and values than any call takes.")


def check_tags(**lists: Collection[str]) -> None:
    """Refuse a list of too many tags, and too long ones; each list has the name of the request's field.

    Raises:
        Invalid: naming the limit.
    """
    for field, tags in lists.items():
        if len(tags) > MAX_TAGS:
            raise Invalid(f"{field}: at most {MAX_TAGS}.")
        if any(len(tag) > MAX_TAG_CHARS for tag in tags):
            raise Invalid(f"{field}: a tag has at most {MAX_TAG_CHARS} characters.")


def check_note(text: str, settings: Settings) -> None:
    """Refuse too long a note.

    Raises:
        TooLarge: naming the limit and its setting.
    """
    if len(text) > settings.max_note_chars:
        raise TooLarge(f"text: a note has at most {settings.max_note_chars} characters (KB_MAX_NOTE_CHARS).")


def most_results(settings: Settings) -> int:
    """The largest `top` that a search may ask for; the default may always be."""
    return max(settings.max_top, DEFAULT_TOP)


def result_limit(asked: int, settings: Settings) -> int:
    """How many results: as many as asked for; the default gives way to a smaller limit.

    Raises:
        Invalid: naming the limit and its setting.
    """
    if asked > most_results(settings):
        raise Invalid(f"top: at most {settings.max_top} (KB_MAX_TOP).")
    return min(asked, settings.max_top)
