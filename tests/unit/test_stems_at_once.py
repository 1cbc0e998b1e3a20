"""The words of a passage are cut at once: each call of the tokenizer costs time, and there are many words."""

from __future__ import annotations

import apsw
import pytest

from kb.lexical.segment import aligned
from kb.lexical.stems import stems_in
from kb.lexical.variants import variants_in
from kb.store.analyzer import Fts5Analyzer, Tokenizer


class Counted(Tokenizer):
    """Counts the calls."""

    def __init__(self):
        super().__init__(apsw.Connection(":memory:"))
        inner, self.calls = self._tokenize, 0

        def tokenize(*arguments, **options):
            self.calls += 1
            return inner(*arguments, **options)

        self._tokenize = tokenize


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Die Häuser im Łódźer Hafen, ﬁnden getUserById und die Größe von 1,872.00 m²"),
        ("ru", "Книги лежат в гавани"),
        ("fr", "Les chevaux 🐳 d'œuvre"),
        (None, "plain words of the harbour"),
        ("de", ""),
    ],
)
def test_the_words_of_a_text_are_cut_in_one_call(language, text):
    counted = Counted()
    found = list(Fts5Analyzer(counted).variants(text, language))
    assert counted.calls <= 1
    written, _ = aligned(text)
    each = [*variants_in(written), *stems_in(written, language)]
    assert [stem for _, _, stem in found] == [stem for variant in each for stem in counted.tokens(variant.text)]
