"""Documents whose names match a query, and files that could not be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from kb.api.search_models import UnreadableFile
from kb.api.stream_safe import composed
from kb.api.tag_tree import is_in_any
from kb.index.words.document_names import file_ending, file_stem, folded, folded_name, folder_names, telling, whole_name
from kb.index.words.edit_distance import plain
from kb.index.words.unicode_forms import has_names
from kb.index.words.word_variants import variants
from kb.search.query import Query, Unit
from kb.store.analyzer import Analyzer
from kb.store.protocol import Transaction
from kb.store.row_mapping import stored
from kb.store.rows import Filter, Job, Named

MOST_NAMED: Final = 500
"""The maximum number of documents with a word in their names; a more frequent word does not distinguish documents."""

LOOKED_AT: Final = 50
BEST: Final = 10
"""The number of documents with matching names that are examined, and the number that are ranked."""

LEAST_NAME: Final = 0.3
"""The smallest share of a name that a query must contain to mean it."""

LACKS_ORDER: Final = 1
"""A title with every word of a query lacks at most this many tokens: the query as one name, if the order differs."""

PART_OF_NAME, REST_OF_NAME = 0.8, 0.4
"""The value of a name that shares words with the query, and the addition if the query contains the whole name."""

NAMED_ALONE: Final = 0.5
"""The addition if the query contains nothing else: a document of that name ranks above one that mentions it."""

WITH_OTHER_SIGNS: Final = 0.5
"""The factor for a name that joins the parts of an identifier or a number differently, or has another form of a word:
less than for a passage with the word as typed.
"""

KEPT_LETTERS: Final = 2
"""The first letters that stemming never changes in a longer stem; of a shorter one, it keeps the first letter."""

WORD: Final = re.compile(r"[^\W_]+")
DIGIT: Final = re.compile(r"\d")
BLANKS: Final = re.compile(r"[\s_-]+")

WHOLE: Final = PART_OF_NAME + REST_OF_NAME + NAMED_ALONE

MOST_FAILED = 50
"""The number of failed files, newest first, that are compared with a query."""


class NameMatch(NamedTuple):
    """How well a document's name matches a query, and the factor for its spelling."""

    likeness: float
    spelling: float

    @property
    def counted(self) -> float:
        return self.likeness * self.spelling

    @property
    def is_whole(self) -> bool:
        """Whether the name, with its folders, has all words of the query."""
        return self.likeness >= PART_OF_NAME + REST_OF_NAME


def sought(units: Iterable[Unit], tokens_of: Callable[[str], Sequence[str]]) -> tuple[list[str], str]:
    """Return the words of a query that can match names, and the query as a whole name."""
    words = telling(tokens_of, " ".join(unit.text for unit in units))
    return list(dict.fromkeys(words)), whole_name(words)


def likeness(named: Named, words: Sequence[str], tokens_of: Callable[[str], Sequence[str]]) -> float:
    """Return how well a document's name matches a query, from 0 to `WHOLE`.

    A title counts only as a whole: its words are searched in the same way as headings.
    """
    asked = set(words)
    if len(asked) == 1 and words[0].isdigit():  # pages and tickets have numbers: texts with the number rank first
        return PART_OF_NAME * any(telling(tokens_of, name) == [*words] for name in named.names)
    if named.lacks <= LACKS_ORDER:
        title = list(dict.fromkeys(telling(tokens_of, named.title)))
        if set(title) == asked:
            return WHOLE if title == [*words] else PART_OF_NAME + REST_OF_NAME
    beginnings = {word[:KEPT_LETTERS] if len(word) > KEPT_LETTERS else word[:1] for word in asked}
    names = [set(telling(tokens_of, name)) for name in named.other_names if _may_have(name, beginnings)]
    named_enough = [name for name in names if len(name & asked) >= max(LEAST_NAME * len(name), 1)]
    if not named_enough:
        return 0.0
    around = (*folder_names(named.source_path), file_ending(named.source_path), file_ending(named.filename))
    inside = {word for name in around for word in telling(tokens_of, name)}
    return max(_likeness(name, asked, inside) for name in named_enough)


def _may_have(name: str, beginnings: Iterable[str]) -> bool:
    """Return False if no word of a name begins so: a quick check that spares most names the tokenizer."""
    if not name.isascii() or has_names(name):
        return True
    lower = name.lower()
    return any(beginning in lower for beginning in beginnings)


def with_name(share: float, match: NameMatch) -> float:
    """Return the value of a passage with a share of a query as typed, in a document with a matching name.

    Words of the query in both places count for no more than the whole query in a name. If the name has another form,
    they count for no more than in one of the two.
    """
    most = PART_OF_NAME + REST_OF_NAME if match.spelling == 1 else 0.0
    return max(share, match.counted, min(share + match.counted, most))


def spelling(named: Named, units: Iterable[Unit], tokens_of: Callable[[str], Sequence[str]]) -> float:
    """Return the factor for the spelling of a name: lower if its signs or forms differ from the typed ones."""
    written = (*named.names, named.source_path, named.filename)
    names = [_folded(name) for name in written]
    joined = [_folded(unit.text) for unit in units if _is_joined(unit)]
    if not all(any(part in name for name in names) for part in joined):
        return WITH_OTHER_SIGNS
    tokens = {token for name in written for token in tokens_of(name)}
    names += [plain(form) for name in names for form in (name, variants(name) or "")]
    said = [unit for unit in units if not _is_joined(unit) and not tokens.isdisjoint(tokens_of(unit.text))]
    return 1.0 if all(_is_written(unit, names) for unit in said) else WITH_OTHER_SIGNS


def is_in_name(named: Named, word: str) -> bool:
    """Whether one of a document's names or its path contains a word as typed."""
    return any(_folded(word) in _folded(name) for name in (*named.names, named.source_path, named.filename))


def is_meant(filename: str, words: Sequence[str], tokens_of: Callable[[str], Sequence[str]]) -> bool:
    """Whether a query contains a file's name or only words of it; the file extension does not count as a name."""
    name, asked = set(telling(tokens_of, file_stem(filename))), set(words)
    return bool(name & asked) and (asked <= name | set(telling(tokens_of, file_ending(filename))) or name <= asked)


def _is_joined(unit: Unit) -> bool:
    return len(WORD.findall(unit.text)) > 1 or DIGIT.search(unit.text) is not None


def _is_written(unit: Unit, names: Iterable[str]) -> bool:
    forms = {_folded(unit.text), plain(_folded(unit.text))}
    return any(form in name for name in names for form in forms)


def _likeness(name: set[str], asked: set[str], inside: set[str]) -> float:
    said = name & asked
    share, covered = len(said) / len(name), (len(said) + len(asked & inside - name)) / len(asked)
    if covered < 1 and all(word.isdigit() for word in said):
        return 0.0
    return covered * (PART_OF_NAME + REST_OF_NAME * share) + NAMED_ALONE * (covered == 1)


def _folded(text: str) -> str:
    """Return a text in the form used to compare names: spaces, underscores and hyphens are equal."""
    return BLANKS.sub(" ", composed(text).casefold())


def unreadable(tx: Transaction, query: Query, analyzer: Analyzer) -> list[UnreadableFile]:
    """Return the unreadable files that a query names, within its filter, newest first."""
    if not (query.units and (failed := tx.jobs.page(status="failed", limit=MOST_FAILED, before=None))):
        return []
    words, _ = sought(query.units, analyzer.indexed)
    return [
        UnreadableFile(job_id=job.id, filename=job.filename, error=job.error or "")
        for job in failed
        if job.filename and is_meant(job.filename, words, analyzer.indexed) and admits(query.where, job)
    ]


def admits(where: Filter, job: Job) -> bool:
    """Whether a filter, apart from type and language, would admit the document of an unreadable file."""
    path, created = job.source_path or "", datetime.fromisoformat(job.created_at)
    earliest = (where.created_after, where.updated_after, where.after)
    latest = (where.created_before, where.before)
    return (
        _has_tags(where, job)
        and where.source_path in (None, job.source_path)
        and (where.source_prefix is None or path.startswith(where.source_prefix))
        and all(part.lower() in path.lower() for part in where.source_parts)
        and not any(part.lower() in path.lower() for part in where.source_parts_not)
        and (where.name is None or _matches_name(where.name, job))
        and where.document_id in (None, job.document_id)
        and all(created >= _to_millisecond(bound) for bound in earliest if bound)
        and all(created < _to_millisecond(bound) for bound in latest if bound)
    )


def _has_tags(where: Filter, job: Job) -> bool:
    def has(tag: str) -> bool:
        return tag in job.tags if where.tag_exact else is_in_any(job.tags, [tag])

    return (
        all(map(has, where.tags))
        and (not where.tag_any or any(map(has, where.tag_any)))
        and not any(map(has, where.tag_not))
    )


def _matches_name(pattern: str, job: Job) -> bool:
    is_part = job.filename is not None and (job.source_path or "").endswith(f"#{job.filename}")
    name = folded_name(job.source_path, job.title or job.filename or "", is_part)
    return fnmatchcase(name, folded(pattern).replace("[", "[[]"))


def _to_millisecond(instant: datetime) -> datetime:
    """Return a moment cut to the millisecond, as SQL compares it."""
    return datetime.fromisoformat(f"{stored(instant)}Z")
