"""The texts of the errors about limits, and the checks that raise them. If a limit is a setting, its text names it."""

from collections.abc import Collection
from typing import Final

from kb.api.errors import Invalid, TooLarge, TooManyTags
from kb.api.limits import DEFAULT_TOP, MAX_TAG_CHARS, MAX_TAGS

UPLOADS_FULL: Final = "too much data is being uploaded. Finish other uploads, or try again in ten minutes."


def check_tags(**lists: Collection[str]) -> None:
    """Refuse lists of too many tags, and too long tags. Each list is named like the field of the request.

    Raises:
        Invalid: the message names the limit.
    """
    for field, tags in lists.items():
        if len(tags) > MAX_TAGS:
            raise too_many_tags(field)
        if any(len(tag) > MAX_TAG_CHARS for tag in tags):
            raise Invalid(f"{field}: a tag can have at most {MAX_TAG_CHARS} characters.")


def too_many_tags(field: str) -> Invalid:
    return Invalid(f"{field}: at most {MAX_TAGS}.")


def check_document_tags(tags: Collection[str]) -> None:
    """Refuse a change after which a document would have too many tags.

    Raises:
        TooManyTags: the message names the limit.
    """
    if len(tags) > MAX_TAGS:
        raise TooManyTags(f"tags: a document can have at most {MAX_TAGS}.")


def check_note(text: str, most: int) -> None:
    """Refuse a note of more than `most` characters.

    Raises:
        TooLarge: the message names the limit and its setting.
    """
    if len(text) > most:
        raise TooLarge(f"text: {note_limit(most)}")


def note_limit(most: int) -> str:
    return f"a note can have at most {most:,} characters (KB_MAX_NOTE_CHARS)."


def body_limit(most: int) -> str:
    return f"The body is larger than {most} bytes. Limits: KB_MAX_UPLOAD_MB for files, KB_MAX_NOTE_CHARS for notes."


def upload_limit(most: int) -> str:
    return f"a file can have {most} bytes (KB_MCP_MAX_UPLOAD_MB)."


def message_limit(most: int, most_with_content: int) -> str:
    return (
        f"Too large: a message can have {most} bytes, or {most_with_content >> 20} MiB if it contains a note or a part"
        " of a file."
    )


def larger_than(most: int) -> str:
    """Return the fault of a file with more than `most` bytes, as the end of a sentence."""
    return f"larger than {most >> 20} MiB"


def most_results(max_top: int) -> int:
    """Return the largest `top` that a search accepts; the default is always accepted."""
    return max(max_top, DEFAULT_TOP)


def result_limit(asked: int, max_top: int) -> int:
    """Return the number of results: the requested number, or the limit if it is smaller than the default.

    Raises:
        Invalid: the message names the limit and its setting.
    """
    if asked > most_results(max_top):
        raise Invalid(f"top: at most {max_top} (KB_MAX_TOP).")
    return min(asked, max_top)
