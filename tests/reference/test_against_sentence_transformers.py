"""Our vectors against those of sentence-transformers, where that is installed."""

from __future__ import annotations

import random

import numpy as np
import pytest

COSINE = 0.99999
WORDS = ["river", "the", "of", "walking", "Mountain", "LIGHT", "paper", "window.", "garden?", "letter's", "re-read"]
ALPHABETS = {
    "chinese": "的一是不了人我在有他这为之大来以个中上们",
    "japanese": "ねこがマットのうえにすわっている東京",
    "korean": "고양이가매트위에앉아있다",
    "arabic": "القطة تجلس على السجادة ",
    "hebrew": "החתול יושב על השטיח ",
    "devanagari": "बिल्ली चटाई पर बैठी है ",
    "cyrillic": "кошка сидит на коврике ",
    "combining": "e\u0301 a\u0308 n\u0303 o\u0302\u0323 z\u0335 ",
    "emoji": "🐈🏽👩‍👩‍👧🇪🇺❤️‍🔥😀 ",
    "control": "a\x00b\x07c\x1bd\x7f\u200b\u200e\u202e\ufeff\ufffd ",
    "symbols": "{}[]()<>=+-*/\\|&^%$#@!~`'\";:,.?_0123456789 ",
    "white": " \t\n\r\u00a0\u2003\u3000",
}
CODE = "def f(x: int) -> str:\n    return {'a': [x for x in range(10)]}.get(x, \"none\")  # __init__ 0xFF != None\n"


def varied_texts() -> list[str]:
    """500 texts: edge cases, every alphabet in growing lengths, and prose of all lengths."""
    chance = random.Random(20)
    texts = ["", " ", "\n\t", "word", "a" * 150, "prefix" * 60, "word " * 1000, CODE, CODE * 30, "##ing [CLS] [MASK]"]
    for alphabet in ALPHABETS.values():
        texts += ["".join(chance.choices(alphabet, k=length)) for length in range(1, 601, 40)]
    while len(texts) < 500:
        texts.append(" ".join(chance.choices(WORDS, k=int(2 ** chance.uniform(0, 10)))))
    return texts


@pytest.mark.requirement("S-4")
def test_500_varied_texts_have_the_vectors_that_sentence_transformers_gives_them(embedder, raw_model):
    reference = pytest.importorskip("sentence_transformers").SentenceTransformer(str(raw_model), device="cpu")
    reference.max_seq_length = embedder.spec.window
    texts = varied_texts()
    expected = reference.encode(texts, normalize_embeddings=True)
    cosines = np.sum(embedder.embed_passages(texts) * expected, axis=1)
    assert len(texts) == 500
    assert cosines.min() >= COSINE, repr(texts[int(cosines.argmin())])
