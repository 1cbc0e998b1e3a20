"""The filters of a search that its results suggest, with counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import groupby, takewhile
from typing import Final

from kb.api.file_types import KINDS
from kb.api.rights import OF_JOB
from kb.api.tag_tree import tags_above
from kb_web.document_html import Row, plain
from kb_web.search_form import SearchForm

IN_LINE: Final = {"type": 2, "path": 1, "time": 2, "tag": 5}
"""Maximum number of filters of each kind in the line above the results; *Filter* shows the others.

Tags come last: their names are the longest, and a narrow window cuts the line off."""

MOST: Final = {"type": 12, "tag": 30, "path": 8, "time": 8, "language": 12}
GROUPS: Final = {"type": "Type", "tag": "Tags", "path": "Folder", "time": "Date", "language": "Language"}

NEARLY_ALL: Final = 0.9
"""The share of the results above which a folder does not narrow a search."""

FIRST_YEAR: Final = "0001"
"""No supported date is earlier."""

YEAR: Final = 4
MONTH: Final = 7
"""Lengths of the year and of the year with month at the start of a date."""


def facets(asked: SearchForm, results: Sequence[Row], operators: Sequence[Row] = ()) -> Row:
    """Return the active filters and operators, the most useful others for one line, and all of them in groups."""
    groups = {
        "type": [*_kinds(asked, results), *_values("type", asked, asked.doc_type, [r["doc_type"] for r in results])],
        "tag": list(_tags(asked, results)),
        "path": list(folder_chips(asked, results)),
        "time": list(_times(asked, results)),
        "language": list(_values("lang", asked, asked.lang, [result["language"] for result in results])),
    }
    groups = {kind: [chip for chip in chips if chip["count"] < len(results)] for kind, chips in groups.items()}
    line = [_most_useful(groups[kind], len(results), most) for kind, most in IN_LINE.items()]
    return {
        "active": [*_active(asked), *(_typed(asked, operator) for operator in _of_kinds(operators))],
        "line": [chips for chips in line if chips],
        "has_more_tags": len(groups["tag"]) > IN_LINE["tag"],
        "groups": [
            {"kind": kind, "name": name, "branches": branches(groups[kind][: MOST[kind]])}
            for kind, name in GROUPS.items()
            if groups[kind]
        ],
    }


def branches(chips: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return chips by branch of the tree of tags, each with the name of its branch; chips on no branch come first."""
    roots = Counter(chip["label"].partition("/")[0] for chip in chips if chip["kind"] == "tag" and "/" in chip["label"])
    tree: dict[str, list[Row]] = {"": []}
    for chip in chips:
        root = chip["label"].partition("/")[0] if chip["kind"] == "tag" else ""
        tree.setdefault(root if roots[root] else "", []).append(chip)
    return [(root, rows) for root, rows in tree.items() if rows]


def _active(asked: SearchForm) -> Iterator[Row]:
    """Return a chip for each filter in use, which removes it."""
    chips: list[tuple[str, str, Row]] = [
        ("mode", {"words": "words only", "meaning": "meaning only"}.get(asked.mode, ""), {"mode": None}),
        ("sort", "newest first" if asked.recent else "", {"sort": None}),
        ("type", asked.doc_type, {"type": None}),
        ("language", asked.lang, {"lang": None}),
        *(("tag", tag, {"tag": tag}) for tag in asked.tags),
        ("path", asked.path and f"in {asked.path}", {"path": None}),
        ("name", asked.name and f"named {asked.name}", {"name": None}),
        ("time", _period(asked.after, asked.before), {"after": None, "before": None}),
    ]
    return (_chip(kind, label, None, asked.with_(**without)) for kind, label, without in chips if label)


def _typed(asked: SearchForm, operator: Row) -> Row:
    """Return a chip for an operator of the query, which removes it."""
    kind, value = operator["operator"], operator["value"]
    said = {"path": f"in {value}", "after": f"from {value}", "before": f"before {value}", "by": f"by {value}"}.get(
        kind
    ) or value
    chip = kind if kind in ("tag", "type") and not operator["excluded"] else "typed"
    label = f"without {said.removeprefix('in ')}" if operator["excluded"] else said
    return _chip(chip, label, None, asked.with_(q=asked.without([operator["typed"]])))


def _of_kinds(operators: Sequence[Row]) -> Iterator[Row]:
    """Yield operators, but only one for all types of a kind that was typed."""
    for typed, group in groupby(operators, key=lambda operator: (operator["operator"], operator["typed"])):
        rows = list(group)
        found = {row["value"] for row in rows} if typed[0] == "type" else set()
        name = next((name for name, types in KINDS.items() if len(found) > 1 and found <= {*types}), None)
        yield from [rows[0] | {"value": name}] if name else rows


def _kinds(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the kinds of which the results have several types."""
    counts = Counter(result["doc_type"] for result in results)
    for name, types in KINDS.items():
        if name != asked.doc_type and sum(each in counts for each in types) > 1:
            yield _chip("type", name, sum(counts[each] for each in types), asked.with_(type=name))


def _most_useful(chips: Sequence[Row], total: int, most: int) -> list[Row]:
    """Return the chips that divide the results best, in their order."""
    ranked = sorted(chips, key=lambda chip: -min(chip["count"], total - chip["count"]))[:most]
    return [chip for chip in chips if chip in ranked]


def _values(parameter: str, asked: SearchForm, chosen: str, values: Iterable[str | None]) -> Iterator[Row]:
    for value, count in Counter(filter(None, values)).most_common():
        if value != chosen:
            yield _chip(parameter, value, count, asked.with_(**{parameter: value}))


def _tags(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the tags and their branches, but no branch with the same documents as a tag below it."""
    branches_of = [{branch for tag in result["tags"] for branch in (tag, *tags_above(tag))} for result in results]
    counts = Counter(branch for every in branches_of for branch in every)
    alone = {above for tag in counts for above in tags_above(tag) if counts[above] == counts[tag]}
    for name, count in counts.most_common():
        if name not in asked.tags and name not in alone:
            yield _chip("tag", name, count, asked.with_(tag=name))


def folder_chips(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the first folders that divide the results, each extended by the folders that all its results share."""
    for shared, group in _divided([folder_of(result["source_path"] or "") for result in results]):
        whole = shared_start(group)
        path, label = "".join(whole), "".join(whole[max(shared, len(whole) - 2) :])
        if path != asked.path:
            yield _chip("path", f"in {label}", len(group), asked.with_(path=path), title=path)


def _divided(folders: Sequence[list[str]]) -> list[tuple[int, list[list[str]]]]:
    """Return groups of the folders, the largest first, each with the number of folders that are the same in all groups.

    A group with nearly all of them narrows nothing, so that its own groups take its place.
    """
    shared, below = len(shared_start(folders)), dict[str, list[list[str]]]()
    for folder in folders:
        if folder[shared:]:
            below.setdefault(folder[shared], []).append(folder)
    groups = [(shared, group) for group in sorted(below.values(), key=len, reverse=True)]
    if groups and NEARLY_ALL * len(folders) < len(groups[0][1]) < len(folders):
        return [*(_divided(groups[0][1]) or groups[:1]), *groups[1:]]
    return groups


def shared_start(folders: Iterable[list[str]]) -> list[str]:
    """Return the folders that all paths begin with."""
    return [level[0] for level in takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))]


def folder_of(path: str) -> list[str]:
    """Return the folders of a path, each with the slash that follows it; a web address begins with its host."""
    if path.startswith(OF_JOB) or "/" not in path:
        return []
    scheme, is_address, _ = path.partition("://")
    start = scheme + is_address if is_address and "/" not in scheme else "/" if path.startswith("/") else ""
    *parents, _ = path[len(start) :].split("/")
    return [f"{start if number == 0 else ''}{name}/" for number, name in enumerate(parents)]


def _times(asked: SearchForm, results: Sequence[Row]) -> Iterator[Row]:
    """Yield the years of the results, or their months if all are of one year."""
    days = [day for day in (result["day"] for result in results) if day > FIRST_YEAR]
    length = YEAR if len({day[:YEAR] for day in days}) > 1 else MONTH
    counts = Counter(day[:length] for day in days)
    for time, count in sorted(counts.most_common(MOST["time"]), reverse=True):
        first, following = bounds(time)
        if (first, following) != (asked.after, asked.before):
            yield _chip("time", _period(first, following), count, asked.with_(after=first, before=following))


def _period(after: str, before: str) -> str:
    for length, form in ((YEAR, "%Y"), (MONTH, "%b %Y")):
        if after and (after, before) == bounds(after[:length]):
            return f"{date.fromisoformat(after):{form}}"
    return " ".join([f"from {after}"] * bool(after) + [f"before {before}"] * bool(before))


def bounds(time: str) -> tuple[str, str]:
    """Return the first day of a year or month, and the first day after it."""
    year, month, length = int(time[:YEAR]), int(time[YEAR + 1 :] or 1), 1 if len(time) > YEAR else 12
    later, following = divmod(month - 1 + length, 12)
    return f"{year:04}-{month:02}-01", f"{year + later:04}-{following + 1:02}-01"


def _chip(kind: str, label: str, count: int | None, href: str, *, title: str = "") -> Row:
    return {"kind": kind, "label": plain(label, 80), "count": count, "href": href, "title": plain(title, 300)}
