"""The text of a note's file: the note's own text, with fields of kb in its front matter.

A field that the text already has is not written again: it belongs to the text. So reading a file that nobody changed
returns the text byte for byte.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from kb.markdown.front_matter import front_matter
from kb.store.rows import Document

FIELDS: Final = frozenset({"kb", "title", "tags", "kb_tags", "created", "kb_created", "updated", "replaces"})
"""The fields that kb writes. `kb_tags` and `kb_created` replace `tags` and `created` if the text has its own."""

BLOCK: Final = re.compile(
    r"(?s)\A(?P<open>---[ \t]*\r?\n)(?P<matter>|.*?\n)(?P<close>(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z))"
)
ENTRY: Final = re.compile(r"(?P<name>[^\s#:\]},-][^:\n]{0,100}?)[ \t]*:(?=[ \t\r\n]|\Z)(?P<value>.*)", re.DOTALL)
LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
CONTINUES: Final = (" ", "\t", "-", "]", "}")
PLAIN: Final = re.compile(r"[^\W\d][\w .,()/+-]*")
PLAIN_TAG: Final = re.compile(r"[^\W\d][\w/-]*")
WORDS_OF_YAML: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
UNWRITABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file when it was written or read last: the text of the note, its title and its tags.

    A title or tags that the file did not show are None.
    """

    text: str
    title: str | None = None
    tags: tuple[str, ...] | None = None

    def packed(self) -> bytes:
        """Return it in the form that the database keeps."""
        return zlib.compress(json.dumps([self.text, self.title, self.tags]).encode())

    @classmethod
    def unpacked(cls, packed: bytes) -> FileContent:
        """Return it from the form that the database keeps."""
        text, title, tags = json.loads(zlib.decompress(packed))
        return cls(text, title, None if tags is None else tuple(tags))


@dataclass(frozen=True, slots=True)
class Claim:
    """The note that a file says it belongs to, and the time when that note was added."""

    document_id: int
    created: str | None


def rendered(document: Document, text: str) -> str:
    """Return the text of a note's file."""
    block = BLOCK.match(text)
    own = own_fields(text)
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    lines = "".join(f"{name}: {value}{end}" for name, value in _fields(document, own))
    if block and own is not None:
        return text[: block.end("open")] + lines + text[block.end("open") :]
    return f"---{end}{lines}---{end}{text}"


def is_same_file(one: str, other: str, own: Set[str] | None) -> bool:
    """Return whether two texts of a file say the same, however their fields are written.

    The time of the last change does not count.
    """
    return _said(one, own) == _said(other, own)


def own_fields(text: str) -> Set[str] | None:
    """Return the fields of kb that the front matter of a text has; None if kb needs a block of its own before it."""
    block = BLOCK.match(text)
    entries = list(_entries(block["matter"])) if block else []
    names = {name for name, _ in entries if name}
    if not names or "kb" in names or any(name is None for name, _ in entries):
        return None
    return names & FIELDS


def claim(written: str) -> Claim | None:
    block = BLOCK.match(written)
    values = {name: lines for name, lines in _entries(block["matter"]) if name} if block else {}
    number = _value(values.get("kb", ""))
    if not (number.isascii() and number.isdigit()):
        return None
    return Claim(int(number), _value(values.get("kb_created") or values.get("created", "")) or None)


def parsed(written: str, own: Set[str] | None) -> FileContent:
    """Return the note's text, title and tags from its file; `own` are the fields that belong to the text."""
    block = BLOCK.match(written)
    if not block:
        return FileContent(written)
    theirs = FIELDS - (own or set())
    entries = list(_entries(block["matter"]))
    kept = "".join(lines for name, lines in entries if name not in theirs)
    taken = {name: lines for name, lines in entries if name in theirs}
    tags = taken.get("tags") or taken.get("kb_tags", "").replace("kb_tags", "tags", 1)
    fields = front_matter("".join(["---\n", taken.get("title", ""), tags, "---\n"]))
    has_tags = "tags" not in (own or ()) or bool(tags)
    body = written[block.end() :]
    text = f"{block['open']}{kept}{block['close']}{body}" if kept.strip() else body
    return FileContent(text, fields.title, fields.tags if has_tags else None)


def without_claim(written: str) -> str:
    """Return the text of a file that names a note of another knowledge base, without this name."""
    block = BLOCK.match(written)
    if not block:
        return written
    kept = "".join(lines for name, lines in _entries(block["matter"]) if name not in ("kb", "kb_created"))
    body = written[block.end() :]
    return f"{block['open']}{kept}{block['close']}{body}" if kept.strip() else body


def _fields(document: Document, own: Set[str] | None) -> Iterator[tuple[str, str]]:
    own = own or set()
    yield "kb", str(document.id)
    if "title" not in own:
        yield "title", _written(document.title, PLAIN)
    tags = [tag for tag in document.tags if "tags" not in own or tag not in document.own_tags]
    if tags:
        yield "kb_tags" if "tags" in own else "tags", f"[{', '.join(_written(tag, PLAIN_TAG) for tag in tags)}]"
    yield "kb_created" if "created" in own else "created", document.created_at
    stamps = {"updated": document.updated_at, "replaces": document.replaces}
    yield from ((name, str(value)) for name, value in stamps.items() if value and name not in own)


def _written(value: str, plain: re.Pattern[str]) -> str:
    value = UNWRITABLE.sub(" ", value)
    if plain.fullmatch(value) and value.strip() == value and value.casefold() not in WORDS_OF_YAML:
        return value
    return json.dumps(value, ensure_ascii=False)


def _entries(matter: str) -> Iterator[tuple[str | None, str]]:
    """Yield each field's name and lines; the name is "" for a blank line or a comment, None for a line of neither."""
    name: str | None = None
    lines = ""
    for line in LINE.findall(matter):
        if lines and name and line.startswith(CONTINUES):
            lines += line
            continue
        if lines:
            yield name, lines
        entry = ENTRY.match(line)
        is_blank = not line.strip() or line.startswith("#")
        name, lines = entry["name"].lower() if entry else "" if is_blank else None, line
    if lines:
        yield name, lines


def _value(lines: str) -> str:
    entry = ENTRY.match(lines)
    return entry["value"].strip().strip("\"'") if entry else ""


def _said(written: str, own: Set[str] | None) -> tuple[object, ...]:
    file, block = parsed(written, own), BLOCK.match(written)
    values = {name: lines for name, lines in _entries(block["matter"]) if name} if block else {}
    replaces = "" if "replaces" in (own or ()) else _value(values.get("replaces", ""))
    return claim(written), file.text, file.title, set(file.tags or ()), replaces
