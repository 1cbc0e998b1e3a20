"""Queries and their answers in words: shared by the engine, the command line, the web interface and the gateway."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

KEYS: Final = ("tag", "path", "type", "after", "before", "by")
"""The operators of a query that are a key, a colon and a value; `kb.search.operators` has the grammar."""

ONLY_MEANING: Final = "only close in meaning from here"
NOT_EACH_WORD: Final = "from here, not all of your words"

PROBABLY_NOT: Final = "this is probably not in kb"
FEW: Final = 3
"""The number of results to show if the subject of the query is probably not in kb, unless someone asks for a number."""


def written(operators: Iterable[Mapping[str, Any]]) -> str:
    """Return the operators that kb understood in the form of a query, such as `tag:work -draft`."""
    return " ".join(map(_written, operators))


def _written(operator: Mapping[str, Any]) -> str:
    value = operator["value"]
    value = f'"{value}"' if " " in value else value
    kind = "" if operator["operator"] == "words" else f"{operator['operator']}:"
    return f"{'-' if operator['excluded'] else ''}{kind}{value}"


def end_of_exact(results: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Return the number of results up to the last exact one, and the line to show after it.

    The text is empty if nothing follows, or if none is exact.
    """
    number = max((number for number, result in enumerate(results, 1) if result["exact"]), default=0)
    if not 0 < number < len(results):
        return number, ""
    has_words = any(result["fts_score"] is not None for result in results[number:])
    return number, NOT_EACH_WORD if has_words else ONLY_MEANING


def has_no_word(results: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all results are only similar in meaning."""
    return all(result["fts_score"] is None and not result["exact"] for result in results)
