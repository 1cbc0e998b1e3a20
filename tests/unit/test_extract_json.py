"""JSON on one line is laid out, as far as that does not multiply it."""

from __future__ import annotations

import json

import pytest

from kb.formats.readers.json import read

DEEP = "[" * 900 + ",".join(["1"] * 25_000) + "]" * 900


@pytest.mark.parametrize("source", [DEEP, '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000 + "]" * 100_000])
def test_a_layout_is_no_longer_than_a_small_multiple_of_its_source(source):
    assert len(read(source.encode()).text) <= 4 * len(source)


def test_values_that_nest_deep_stand_on_lines_of_their_own_without_indentation():
    text = read(DEEP.encode()).text
    assert text.count("\n") > 25_000
    assert json.loads(text) == json.loads(DEEP)


def test_ordinary_values_are_indented():
    value = {"name": "Überlingen", "list": [{"a": [1, 2, {"b": None}]}] * 20}
    assert read(json.dumps(value).encode()).text == json.dumps(value, indent=2, ensure_ascii=False)
