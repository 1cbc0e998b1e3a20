"""The links of a Markdown text, and the documents that they lead to, by Obsidian's rules."""

from __future__ import annotations

import os.path
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from kb.lexical.document_names import IS_URL, file_name, file_stem, folded

MOST: Final = 1000
"""The number of links kept of a document."""

LONGEST: Final = 500
"""The maximum length of a target."""

DOCUMENT: Final = "kb://documents/"
MARKDOWN: Final = ".md"

_FENCE: Final = re.compile(r"[ >]*(`{3,}|~{3,})")
_TICKS: Final = re.compile(r"`+")
_LINK: Final = re.compile(
    r"\[\[(?P<wiki>[^\[\]\n]{1,1000})\]\]"
    r"|\]\([ \t]*(?:<(?P<quoted>[^<>\n]{1,2000})>|(?P<plain>(?:[^\s()<>]|\([^\s()]{0,500}\)){1,2000}))"
    r"(?:[ \t]+(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'))?[ \t]*\)"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ \t]*<?(?P<reference>[^\s<>]{1,2000})"
    r"|(?P<address>(?:https?|kb)://[^\s<>\[\]()\"'`|]{1,2000})",
    re.MULTILINE,
)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_BEHIND: Final = ".,;:!?*_~"
"""Marks after an address that do not belong to it."""


class Link(NamedTuple):
    """A link: its target as written, the key by which documents are found, and its place in characters.

    The key is the folded name of a file without its folders, an address, or empty for a link to the document itself.
    """

    target: str
    key: str
    place: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that a key finds. `rank` says by which name: see `names_of`. `path` is its folded path."""

    document_id: int
    title: str
    path: str
    rank: int

    @classmethod
    def of(cls, document_id: int, title: str, source_path: str | None, rank: int) -> Candidate:
        """Return the candidate for a document."""
        return cls(document_id, title, folded(source_path or "").replace("\\", "/"), rank)

    def is_at(self, path: str, *, is_exact: bool) -> bool:
        """Return whether its path, with or without the extension, is `path` or, if not `is_exact`, ends with it."""
        return any(form == path or (not is_exact and form.endswith(f"/{path}")) for form in _forms(self.path))

    def order(self, here: str) -> tuple[int, int, str, int]:
        """Return its order among other documents for a link in the folder `here`, the nearest first."""
        shared = 0
        if not self.path.startswith(f"{here}/"):
            shared = os.path.commonprefix([f"{here}/", self.path]).count("/")  # noqa: RUF071 - by letters
        return -shared, len(self.path), self.path, self.document_id


BY_NAME, BY_STEM, BY_ALIAS, BY_TITLE = range(4)


def names_of(
    title: str, source_path: str | None, other_names: Iterable[tuple[str, int]], *, is_part: bool = False
) -> dict[str, int]:
    """Return the keys that find a document, with the best rank of each.

    The ranks are the name of a file, or of a Markdown file without its extension; the name of another file without its
    extension; an alias; the title of a note. A document without a path has its title as its name.
    """
    names = [*other_names]
    if source_path and IS_URL.match(source_path):
        names.append((address_key(source_path), BY_NAME))
    elif source_path:
        name, stem = file_name(source_path, is_part=is_part), file_stem(source_path, is_part=is_part)
        own = name[: -len(MARKDOWN)] if folded(name).endswith(MARKDOWN) else name
        names += [(name, BY_NAME), (own, BY_NAME), (stem, BY_STEM)]
    else:
        names.append((title, BY_NAME))
    ranks: dict[str, int] = {}
    for name, rank in names:
        key = folded(name.replace("\0", "").strip())[:LONGEST]
        if key:
            ranks[key] = min(rank, ranks.get(key, rank))
    return ranks


def links_in(text: str) -> list[Link]:
    """Return the links in a Markdown text, each target once, without those in code."""
    links: dict[str, Link] = {}
    for match in _LINK.finditer(_without_code(text)):
        if link := _parse(match):
            links.setdefault(link.target, link)
        if len(links) == MOST:
            break
    return list(links.values())


def _parse(match: re.Match[str]) -> Link | None:
    if wiki := match["wiki"]:
        target = wiki.partition("|")[0].removesuffix("\\").strip()
        key = _name_key(target)
    else:
        target = match["quoted"] or match["plain"] or match["reference"] or match["address"].rstrip(_BEHIND)
        if target.lower().startswith(("http://", "https://", DOCUMENT)):
            key = address_key(target)
        elif _SCHEME.match(target) or target.startswith("//"):
            return None
        else:
            target = unquote(target)
            key = _name_key(target)
    if not target or len(target) > LONGEST or "\x00" in target:
        return None
    return Link(target, key[:LONGEST], match.start())


def _name_key(target: str) -> str:
    return folded(_path(target).rpartition("/")[2].strip())


def _path(target: str) -> str:
    """Return the path of a target, without its heading or block, and with slashes."""
    return target.partition("#")[0].replace("\\", "/").strip()


def address_key(address: str) -> str:
    """Return the form in which addresses are compared: case-folded, without a fragment and a final slash."""
    if folded(address).startswith(DOCUMENT):
        return DOCUMENT + address[len(DOCUMENT) :].partition("#")[0].partition("/")[0]
    try:
        parts = urlsplit(address)
    except ValueError:
        return folded(address)
    return folded(urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, "")))


def is_address(key: str) -> bool:
    """Return whether a key is a web address."""
    return key.startswith(("http://", "https://"))


def resolve(target: str, source_path: str | None, root: str, candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the document that a link by name leads to; None if no candidate has its path.

    By path, then name, then alias and title. If the target has folders, the document at this path from the root comes
    first; then documents in the folder of the linking document or below it, the shortest path first; then documents
    that share most folders with it.

    Args:
        target: the target as written.
        source_path: the path of the linking document.
        root: the folder, such as a vault, that it belongs to.
        candidates: the documents that the key of the link finds.
    """
    path = folded(_path(target)).removesuffix(MARKDOWN)
    here = folded(source_path or "").replace("\\", "/").rpartition("/")[0]
    top = folded(root).rstrip("/")
    is_relative = path.startswith(("./", "../"))
    if is_relative:
        path = posixpath.normpath(posixpath.join(here, path))
    elif path.startswith("/"):
        path = path.lstrip("/")
        is_relative = bool(top)
        path = f"{top}/{path}" if top else path
    has_folder = "/" in path
    found = [each for each in candidates if not has_folder or each.is_at(path, is_exact=is_relative)]
    best = min((each.rank for each in found), default=BY_NAME)
    found = [each for each in found if each.rank == best]
    preferences: list[Callable[[Candidate], bool]] = []
    if top:
        at_root, inside = f"{top}/{path}", f"{top}/"
        preferences += [lambda each: each.path.removesuffix(MARKDOWN) == at_root] * has_folder
        preferences.append(lambda each: each.path.startswith(inside))
    if here:
        preferences.append(lambda each: each.path.startswith(f"{here}/"))
    for is_preferred in preferences:
        found = [*filter(is_preferred, found)] or found
    return min(found, key=lambda each: each.order(here), default=None) if len(found) > 1 else next(iter(found), None)


def _forms(own: str) -> Iterator[str]:
    """Yield a path, and the path without the extension."""
    folder, slash, name = own.rpartition("/")
    yield own
    yield own.removesuffix(MARKDOWN)
    yield f"{folder}{slash}{file_stem(name)}"


def _without_code(text: str) -> str:
    """Return a text of the same length with blanks in place of code."""
    lines = text.splitlines(keepends=True)
    fence = ""
    pieces: list[str] = []
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            pieces.append(_blank(line))
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            fence = mark[1]
            pieces.append(_blank(line))
        else:
            pieces.append(line)
    return "\n\n".join(map(_without_spans, "".join(pieces).split("\n\n")))


def _blank(line: str) -> str:
    return "\n".join(" " * len(part) for part in line.split("\n"))


def _without_spans(paragraph: str) -> str:
    """Return a paragraph with blanks in place of code spans, which end with as many backticks as they begin with."""
    if "`" not in paragraph:
        return paragraph
    runs = list(_TICKS.finditer(paragraph))
    closing: dict[int, list[int]] = {}
    for index, run in reversed(list(enumerate(runs))):
        closing.setdefault(len(run[0]), []).append(index)
    pieces: list[str] = []
    place = index = 0
    while index < len(runs):
        later = closing[len(runs[index][0])]
        while later and later[-1] <= index:
            later.pop()
        end = later[-1] if later else index
        span = paragraph[runs[index].start() : runs[end].end()]
        pieces += [paragraph[place : runs[index].start()], _blank(span)]
        place, index = runs[end].end(), end + 1
    return "".join([*pieces, paragraph[place:]])
