"""Replies as JSON: a long one is put together from its parts, to the same text."""

from __future__ import annotations

import pytest

from kb.api.models import DocumentWithChunks, SearchReply
from kb.routes.openapi import read_examples
from kb.routes.thread_route import MANY, rendered

EXAMPLES = read_examples()


@pytest.mark.parametrize("items", [0, 1, MANY, MANY + 1, 1000])
def test_a_long_reply_is_the_same_json(items):
    example = EXAMPLES["DocumentWithChunks"]
    document = DocumentWithChunks.model_validate(
        example | {"chunks": example["chunks"] * items, "title": 'a"\n\u2028é🐘'}
    )
    assert rendered(document) == document.model_dump_json().encode()
    example = EXAMPLES["SearchReply"]
    found = SearchReply.model_validate(example | {"results": example["results"] * items})
    assert rendered(found) == found.model_dump_json().encode()
