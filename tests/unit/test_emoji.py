"""Emojis are indexed by their numbers, behind a mark that people may write as well."""

import pytest

from kb.lexical.emoji import emojis, written


@pytest.mark.parametrize("sign", ["🐳", "🇳🇴", "☔"])
def test_an_emoji_is_shown_as_people_write_it(sign):
    assert [written(each) for each in emojis(sign)] == [sign]


@pytest.mark.parametrize(
    "word", ["", "whale", "\ue2a4", "\ue2a4foo.bar", "\ue2a4128051a", "\ue2a455296", "\ue2a4999999999"]
)
def test_a_word_that_begins_with_the_mark_stays_as_it_is(word):
    assert written(word) == word
