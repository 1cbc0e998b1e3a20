"""What schemathesis cannot know: forms and queries have no types, so a number in a text's place is its digits."""

from __future__ import annotations

import schemathesis

TEXTS = {"title", "source_path", "source_prefix", "doc_type"}
LISTS = {"tag", "tags", "tag_any", "tag_not"}


@schemathesis.hook
def filter_case(context, case):
    """Leave out what is wrong in nothing but the type of a text."""
    form = case.body if case.media_type == "multipart/form-data" and isinstance(case.body, dict) else {}
    sent = {**(case.query or {}), **form}
    is_typed = all(isinstance(sent[name], str) for name in sent.keys() & TEXTS)
    return is_typed and all(is_text(sent[name]) for name in sent.keys() & LISTS)


def is_text(value):
    """Whether a field holds a text, or some."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
