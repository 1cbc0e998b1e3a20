"""Searches the guide by words, and by meaning as soon as its passages have vectors of the engine's model."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from kb_web.guide import GuidePage, Section, pages
from kb_web.marking import mark

if TYPE_CHECKING:
    from kb.asgi.subapps import TextModel

MAX_WORDS: Final = 8
MAX_RESULTS: Final = 20
SNIPPET: Final = 220
SHORT: Final = 2
"""Words of this length count only if a query has no longer ones."""

LESS_LIKELY: Final = ("adr/", "README", "reference/", "ranking", "decisions")
"""Few readers look for these pages."""

BY_WORDS: Final = ("adr/", "README", "architecture", "requirements", "add-a-", "benchmarks")
"""These pages are found by words only."""

LESS: Final = 0.1
"""What a page that is less likely lacks, on the scale of cosines."""

MEANING: Final = 0.9
"""The share of the meaning in a query of several words; in a shorter one, which is often a name, it is half."""

SEVERAL: Final = 3
PASSAGE: Final = 700
"""The length of a passage in characters."""

PASSAGES: Final = 3
"""The number of passages of a section that have vectors."""

BATCH: Final = 16

Key = tuple[str, str]
"""The name of a page, and the anchor of a section."""


class GuideSearch:
    """Makes the vectors once, in the background, when the guide is first opened, and keeps them in a file.

    Args:
        model: returns the engine's model; None while there is none.
        folder: the folder of the file.
    """

    def __init__(self, model: Callable[[], TextModel | None], folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._lock = threading.Lock()
        self._made_for = ""
        self._vectors: tuple[str, list[Key], Any] = "", [], None

    def prepare(self) -> threading.Thread | None:
        """Begin to make the vectors, unless this model has made them."""
        model = self._model()
        with self._lock:
            if model is None or self._made_for == model.spec.digest:
                return None
            self._made_for = model.spec.digest
        thread = threading.Thread(target=self._make, args=[model], name="kb-guide", daemon=True)
        thread.start()
        return thread

    def search(self, query: str, *, by_meaning: bool = True) -> list[tuple[GuidePage, Section, Markup]]:
        """Return the pages that fit a query, best first, each with its best section and a snippet of it."""
        if by_meaning:
            self.prepare()
        every, words = pages(), words_of(query)
        weights = weights_of(words, every)
        scores = by_words(every, weights)
        if near := self._by_meaning(query) if by_meaning else {}:
            scores = together(scores, near, MEANING if len(words) >= SEVERAL else 0.5)
        best = sorted(_best(every, scores), key=lambda found: -found[0])[:MAX_RESULTS]
        words.sort(key=weights.__getitem__, reverse=True)
        return [(page, section, snippet(section.text, words)) for _, page, section in best]

    def _by_meaning(self, query: str) -> dict[Key, float]:
        """Return the cosine of the best passage of each section; empty before there are vectors."""
        model, (digest, keys, vectors) = self._model(), self._vectors
        if model is None or model.spec.digest != digest:
            return {}
        cosines = (vectors @ model.embed_queries([query])[0]).tolist()
        rows = groupby(zip(keys, cosines, strict=True), key=lambda row: row[0])
        return {key: max(cosine for _, cosine in group) for key, group in rows}

    def _make(self, model: TextModel) -> None:
        import numpy as np

        keys, texts = zip(*passages(pages()), strict=True)
        digest = sha256("\0".join([model.spec.digest, *texts]).encode()).hexdigest()[:16]
        file = self._folder / f"guide-{digest}.npy"
        vectors = None
        with suppress(OSError, ValueError, EOFError):  # it is not there yet, or damaged
            vectors = np.load(file)
        if vectors is None or len(vectors) != len(keys):
            vectors = np.concatenate([model.embed_passages(batch, alone=False) for batch in _batches(texts)])
            with suppress(OSError):
                for old in self._folder.glob("guide-*.npy"):
                    old.unlink()
                np.save(file, vectors)
        self._vectors = model.spec.digest, [*keys], vectors


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))


def passages(every: Iterable[GuidePage]) -> Iterator[tuple[Key, str]]:
    """Yield the beginnings of sections in passages, each under its headings."""
    for page in every:
        for section in page.sections if not page.name.startswith(BY_WORDS) else ():
            head = page.title if section.level == 1 else f"{page.title}: {section.heading}"
            for start in range(0, min(len(section.text) or 1, PASSAGES * PASSAGE), PASSAGE):
                yield (page.name, section.anchor), f"{head}\n{section.text[start : start + PASSAGE]}"


def together(by_words: Mapping[Key, float], near: Mapping[Key, float], share: float) -> dict[Key, float]:
    """Return the scores of sections by words and meaning, of which the meaning has a share."""
    most = max(by_words.values(), default=0) or 1
    return {
        key: share * near.get(key, 0)
        + (1 - share) * by_words.get(key, 0) / most
        - LESS * key[0].startswith(LESS_LIKELY)
        for key in {**by_words, **near}
    }


def _best(every: Iterable[GuidePage], scores: Mapping[Key, float]) -> Iterator[tuple[float, GuidePage, Section]]:
    """Yield each page that has a section with a score, and the best of these."""
    for page in every:
        found = [(scores[key], section) for section in page.sections if (key := (page.name, section.anchor)) in scores]
        if found:
            score, section = max(found, key=lambda pair: pair[0])
            yield score, page, section


def words_of(query: str) -> list[str]:
    words = re.findall(r"[\w.-]+", query.lower())
    words = [word.removesuffix("s") for word in words if len(word) > SHORT] or words
    return list(dict.fromkeys(words))[:MAX_WORDS]


def weights_of(words: Iterable[str], every: Iterable[GuidePage]) -> dict[str, float]:
    """Return the weights of words: one counts more if few sections have it."""
    sections = [section for page in every for section in page.sections]
    counts = {
        word: sum(position(word, each.heading) >= 0 or position(word, each.text) >= 0 for each in sections)
        for word in words
    }
    return {word: log(1 + len(sections) / (1 + count)) for word, count in counts.items()}


def by_words(every: Iterable[GuidePage], weights: Mapping[str, float]) -> dict[Key, float]:
    """Return the scores of the sections that have some words; a section with all of them counts most."""
    return dict(scored for page in every for scored in _scored(page, weights))


def position(word: str, text: str) -> int:
    """Return the position of the first word of a text that begins with `word`, in lower case; -1 if none does."""
    text = text.lower()
    at = text.find(word)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1)
    return at


def _scored(page: GuidePage, weights: Mapping[str, float]) -> Iterator[tuple[Key, float]]:
    share = 0.5 if page.name.startswith(BY_WORDS) else 1
    for section in page.sections:
        score, count = 0.0, 0
        for word, weight in weights.items():
            in_heading, in_text = position(word, section.heading) >= 0, position(word, section.text) >= 0
            if in_heading or in_text:
                in_title = position(word, page.title) >= 0
                score += weight * (4 * in_title + 2 * (in_heading and section.level > 1) + in_text)
                count += 1
        if count:
            yield (page.name, section.anchor), score * share * count / len(weights)


def snippet(text: str, words: Sequence[str]) -> Markup:
    """Return the part of a section around the first word that it has; put the most important word first."""
    at = next((found for word in words if (found := position(word, text)) >= 0), 0)
    at = max(0, at - SNIPPET // 3)
    line = text.rfind("\n", 0, at) + 1
    begin = line if at - line < SNIPPET // 3 else text.find(" ", at) + 1
    part = " ".join(text[begin : begin + SNIPPET].split())
    if begin + SNIPPET < len(text):
        part = f"{part.rpartition(' ')[0]} …"
    beginnings = "|".join(map(re.escape, words))
    marked = set(re.findall(rf"(?<![^\W_])(?:{beginnings})\w*", part, re.IGNORECASE)) if beginnings else set()
    return mark(part, marked)
