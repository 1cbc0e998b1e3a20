"""The documents that the links of a Markdown text lead to, by Obsidian's rules."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import attrgetter
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from kb.api.web_address import is_page, page_address
from kb.index.words.document_names import IS_URL, file_name, file_stem, folded
from kb.markdown import links as markdown_links
from kb.markdown.links import WrittenLink
from kb.markdown.prose import prose

MOST: Final = 1000
"""The number of links kept of a document."""

LONGEST: Final = 500
"""The maximum length of a target."""

DOCUMENT: Final = "kb://documents/"
MAIL: Final = "mid:"
HASH: Final = "%23"
"""A hash sign in the name of a file, which does not precede a heading."""

MARKDOWN: Final = ".md"

_OWN: Final = re.compile(r"(?:https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?)?/d/(\d{1,18})(?![^/?#])")
"""The address of a document in the web interface on this computer."""

_MESSAGE: Final = re.compile(r"(?:mid:|message:(?://)?)<?([^\s<>/]+)>?(?:/.*)?", re.IGNORECASE)
"""The address of a mail, by RFC 2392 or as Apple Mail writes it."""

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)

MOST_OF_LINE: Final = 300
MOST_BEFORE: Final = 150
"""The maximum length of a line around a link, and of the part before the link."""

LONGEST_WORD: Final = 40
"""The length of a word that is never cut at the end of such a line."""


class Link(NamedTuple):
    """A link: its target as written, the key by which documents are found, and its place in characters.

    The key is the folded name of a file without its folders, an address, or empty for a link to the document itself.
    """

    target: str
    key: str
    place: int

    @property
    def path(self) -> str:
        """The folded target of a link with folders, without heading and extension; empty for other links."""
        path = "" if is_address(self.key) else _named_path(self.target)
        return path.removesuffix(MARKDOWN) if "/" in path else ""

    def spot(self, folder: str) -> int:
        """Return a number; links in documents with the same key and number lead to the same document."""
        spot = "" if is_address(self.key) else f"{folder}\0{self.path}"
        return int.from_bytes(blake2b(spot.encode(errors="surrogatepass"), digest_size=8).digest(), "big", signed=True)


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
        return cls(document_id, title, slashed(source_path or title), rank)

    def is_at(self, path: str, *, is_exact: bool) -> bool:
        """Return whether its path, with or without the extension, is `path` or, if not `is_exact`, ends with it."""
        return any(form == path or (not is_exact and form.endswith(f"/{path}")) for form in _forms(self.path))

    @property
    def order(self) -> tuple[int, str, int]:
        """Its order among documents in the same folder or below it."""
        return len(self.path), self.path, self.document_id


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
        names += [(title, BY_NAME), (title.rpartition("/")[2], BY_NAME)]
    ranks: dict[str, int] = {}
    for name, rank in names:
        key = folded(name.replace("\0", "").strip())[:LONGEST]
        if key and not key.startswith((DOCUMENT, MAIL)):
            ranks[key] = min(rank, ranks.get(key, rank))
    return ranks


def links_in(text: str) -> list[Link]:
    """Return the links in a Markdown text, each target once, but no links in code and in comments."""
    links: dict[str, Link] = {}
    for written in markdown_links.links_in(prose(text)):
        if link := _parse(written):
            links.setdefault(link.target, link)
        if len(links) == MOST:
            break
    return list(links.values())


def line_at(text: str, place: int) -> str:
    """Return the line at a place in a text, or the words of a long line around it, with … where others are left out."""
    begin, stop = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    start, stop = max(begin, place - MOST_BEFORE), len(text) if stop < 0 else stop
    if start > begin:
        start = text.find(" ", start, start + LONGEST_WORD) + 1 or start
    end = min(stop, start + MOST_OF_LINE)
    if end < stop:
        end = max(text.rfind(" ", end - LONGEST_WORD, end), 0) or end
    return f"{'… ' if start > begin else ''}{text[start:end].strip()}{' …' if end < stop else ''}"


def _parse(written: WrittenLink) -> Link | None:
    target = written.target
    if written.is_wiki and not is_page(target):
        key = _named_path(target).rpartition("/")[2].strip()
    elif own := _OWN.match(target):
        key = f"{DOCUMENT}{own[1]}"
    elif target.lower().startswith(("http://", "https://", DOCUMENT)):
        key = address_key(target)
    elif mail := _MESSAGE.fullmatch(unquote(target)):
        key = mail_key(mail[1])
    elif (not target.startswith("file:///") and _SCHEME.match(target)) or target.startswith("//"):
        return None
    else:
        target = HASH.join(map(_unquoted, target.removeprefix("file://").split(HASH)))
        key = _named_path(target).rpartition("/")[2].strip()
    if not target or len(target) > LONGEST or "\x00" in target:
        return None
    return Link(target, key[:LONGEST], written.start)


def _unquoted(target: str) -> str:
    """Return a target without percent-encoding; older programs encode names in Latin-1."""
    try:
        return unquote(target, errors="strict")
    except UnicodeDecodeError:
        return unquote(target, "latin-1")


def slashed(path: str) -> str:
    """Return a path, folded and with slashes."""
    return folded(path).replace("\\", "/")


def folder_of(source_path: str | None) -> str:
    """Return the folder of a document as `Resolver` compares it; empty if it has none."""
    return "" if source_path is None or IS_URL.match(source_path) else slashed(source_path).rpartition("/")[0]


def _named_path(target: str) -> str:
    """Return the path of a link by name, folded and with slashes, without its heading or block."""
    return slashed(target.partition("#")[0].replace(HASH, "#")).strip()


def address_key(address: str) -> str:
    """Return the form in which addresses are compared: of the page, case-folded, without fragment and final slash."""
    if folded(address).startswith(DOCUMENT):
        return DOCUMENT + address[len(DOCUMENT) :].partition("#")[0].partition("/")[0]
    try:
        parts = urlsplit(page_address(address))
    except ValueError:
        return folded(address)
    return folded(urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, "")))


def mail_key(message_id: str) -> str:
    """Return the key of a mail."""
    return f"{MAIL}{folded(message_id)}"[:LONGEST]


def is_elsewhere(key: str) -> bool:
    """Return whether a key is the address of something that kb need not hold, such as a page of the web."""
    return key.startswith(("http://", "https://", MAIL))


def is_address(key: str) -> bool:
    """Return whether a key is an address, and not a name."""
    return is_elsewhere(key) or key.startswith(DOCUMENT)


class Resolver:
    """Finds the documents that links by name lead to.

    By path, then name, then alias and title. If the target has folders, the document at this path from the root comes
    first; then documents in the folder of the linking document or below it, the shortest path first; then documents
    that share most folders with it.

    Args:
        candidates: the documents that each key finds.
        roots: the synced folders, such as vaults.
    """

    def __init__(self, candidates: Mapping[str, Sequence[Candidate]], roots: Iterable[str]) -> None:
        self._candidates = candidates
        self._roots = [f"{slashed(root).rstrip('/')}/" for root in roots]
        self._places: dict[tuple[str, str, bool], dict[str, Candidate]] = {}
        self._by_tail: dict[str, dict[str, list[Candidate]]] = {}

    def document(self, link: Link, folder: str) -> Candidate | None:
        """Return the document that a link in a folder leads to; None if no candidate has its path."""
        key, path = link.key, link.path
        if not self._candidates.get(key):
            return None
        root = max((root for root in self._roots if f"{folder}/".startswith(root)), key=len, default="")
        is_exact = path.startswith(("./", "../")) or bool(root and path.startswith("/"))
        if path.startswith(("./", "../")):
            path = posixpath.normpath(posixpath.join(folder, path))
        elif path.startswith("/"):
            if at_path := self._at(key, path, is_exact=True):
                return at_path[""]
            path = f"{root}{path.lstrip('/')}"
        path = path if "/" in path else ""
        places = self._at(key, path, is_exact=is_exact)
        above = (places[each] for each in _folders_of(f"{folder}/" if folder else "") if each in places)
        return (places.get(f"{root}{path}") if root and path else None) or next(above, None)

    def _at(self, key: str, path: str, *, is_exact: bool) -> dict[str, Candidate]:
        """Return the first candidate with a path, in or below each folder, and the one at each path."""
        places = self._places.get((key, path, is_exact))
        if places is None:
            found = self._with_path(key, path, is_exact=is_exact) if path else self._candidates[key]
            best = min((each.rank for each in found), default=BY_NAME)
            places = self._places[key, path, is_exact] = {}
            for each in sorted((each for each in found if each.rank == best), key=attrgetter("order")):
                for place in (each.path.removesuffix(MARKDOWN), *_folders_of(each.path)):
                    places.setdefault(place, each)
        return places

    def _with_path(self, key: str, path: str, *, is_exact: bool) -> list[Candidate]:
        """Return the candidates with a path, without a look at all documents of a popular name."""
        by_tail = self._by_tail.get(key)
        if by_tail is None:
            by_tail = self._by_tail[key] = {}
            for each in self._candidates[key]:
                for tail in {_tail(form) for form in _forms(each.path)}:
                    by_tail.setdefault(tail, []).append(each)
        return [each for each in by_tail.get(_tail(path), ()) if each.is_at(path, is_exact=is_exact)]


def _tail(path: str) -> str:
    """Return the last folder and the name of a path."""
    return "/".join(path.rsplit("/", 2)[-2:])


def _folders_of(path: str) -> Iterator[str]:
    """Yield the folders that contain a path, the nearest first; the last one is empty and contains all paths."""
    end = path.rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)
    yield ""


def _forms(own: str) -> Iterator[str]:
    """Yield a path, and the path without the extension."""
    folder, slash, name = own.rpartition("/")
    yield own
    yield own.removesuffix(MARKDOWN)
    yield f"{folder}{slash}{file_stem(name)}"
