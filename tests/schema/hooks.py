"""What schemathesis cannot know: forms and queries have no types, so a number in a text's place is its digits."""

from __future__ import annotations

from datetime import UTC, datetime

import schemathesis

TEXTS = {"title", "source_path", "source_prefix", "source_part", "doc_type"}
LISTS = {"tag", "tags", "tag_any", "tag_not"}
MOMENTS = {"since"}
"""They must be past, which a schema cannot say."""


@schemathesis.hook
def filter_case(context, case):
    """Leave out what is wrong in nothing but the type of a text, and what is to come."""
    form = case.body if case.media_type == "multipart/form-data" and isinstance(case.body, dict) else {}
    sent = {**(case.query or {}), **form}
    is_typed = all(isinstance(sent[name], str) for name in sent.keys() & TEXTS)
    body = case.body if isinstance(case.body, dict) else {}
    moments = {**sent, **body}
    is_past = all(is_over(moments[name]) for name in moments.keys() & MOMENTS)
    return is_typed and is_past and all(is_text(sent[name]) for name in sent.keys() & LISTS)


def is_over(moment):
    """Whether a moment is of a past year, or no moment at all."""
    year = str(moment)[:4]
    return not year.isdecimal() or int(year) < datetime.now(UTC).year


def is_text(value):
    """Whether a field holds a text, or some."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
