"""The fields before the text of a Markdown file: title, tags, date, aliases, in YAML or TOML.

Obsidian, Jekyll, Hugo and others write them there, each with keys of its own. Values are kept as written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import normalize

from kb.api.tag_tree import clean_tags

if TYPE_CHECKING:
    import yaml

INLINE_TAGS: Final = "inline_tags"
"""A field; if false, a # in the text does not make a tag."""
# Between --- (YAML) or +++ (TOML), before anything else.
BLOCK: Final = re.compile(r"(?s)\A(---|\+\+\+)[ \t]*\r?\n(?P<matter>.*?\n)(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_TAG_NAMES: Final = ("tags", "tag", "kb_tags")
_ALIAS_NAMES: Final = ("aliases", "alias")
_ENTRY: Final = re.compile(r"(?P<name>[^\W\d][\w /.-]{0,60}?)[ \t]*+(?:=|:(?=[ \t]|$))(?P<value>.*)$")
_GOES_ON: Final = " \t-]"
_NULL: Final = re.compile(r"(?:~|null|Null|NULL)\Z")
_AROUND: Final = " \t[]{}-\"',"
_LONGEST: Final = 1 << 16
_DEEPEST: Final = 64
"""The maximum number of dots on a line of TOML: the time for a key grows with the square of its parts."""
_DATES: Final = ("date", "created", "created_at", "date created", "creation date", "published")
_MODIFIED: Final = ("updated", "updated_at", "modified", "date modified", "lastmod")
_CLAIMS: Final = {"title": "title"} | dict.fromkeys((*_DATES, *_MODIFIED), "date")
_NOT_COMPARED: Final = frozenset({*_CLAIMS, *_TAG_NAMES})
"""The fields that do not make another fact of the same text."""
_LONGEST_DATE: Final = 40


class FrontMatter(NamedTuple):
    """The fields before the text, which begins at `length`; they are also part of the text unless `is_understood`.

    `is_lost` means that they break the rules of YAML or TOML and that the tags in them cannot be read line by line.
    """

    length: int = 0
    title: str | None = None
    tags: tuple[str, ...] = ()
    date: str | None = None
    aliases: tuple[str, ...] = ()
    is_understood: bool = False
    inline_tags: bool = True
    is_lost: bool = False


def front_matter(text: str) -> FrontMatter:
    """Return the fields before the text; invalid ones remain part of the text."""
    block = BLOCK.match(text)
    if not block:
        return FrontMatter()
    matter = block["matter"].replace("\r\n", "\n")
    values = _values(matter, is_toml=text.startswith("+"))
    if values is None:
        return _rescued(matter, block.end())
    return FrontMatter(
        block.end(),
        _line(values.get("title")),
        clean_tags([*(tag for name in _TAG_NAMES for tag in _listed(values.get(name))), *_commented(matter)]),
        next(filter(None, (_date(values.get(name)) for name in (*_DATES, *_MODIFIED))), None),
        _names(values.get("aliases") or values.get("alias"), values.get("authors") or values.get("author")),
        is_understood=True,
        inline_tags=str(values.get(INLINE_TAGS)).lower() != "false",
    )


def with_renamed_tags(text: str, names: Mapping[str, str]) -> str:
    """Return a text whose front matter has the new names of some tags; the same text if that cannot be done safely.

    Everything else stays the same, such as quotation marks, comments and the order of the fields.
    """
    block = BLOCK.match(text)
    tags = front_matter(text).tags
    if not block or names.keys().isdisjoint(tags):
        return text
    old = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    tag = re.compile(rf"(?<![^\s,\[\]\"'#])(?:{old})(?![^\s,\[\]\"'])")
    lines, is_tags, newline = list[str](), False, "\n"
    for line in block["matter"].split("\n"):
        scan = _ENTRY.match(line.rstrip("\r"))
        is_tags = scan["name"].lower() in _TAG_NAMES if scan else is_tags and line[:1] in _GOES_ON
        start = scan.start("value") if scan else 0
        lines.append(line[:start] + tag.sub(lambda match: names[match[0]], line[start:]) if is_tags else line)
    after = f"{text[: block.start('matter')]}{newline.join(lines)}{text[block.end('matter') :]}"
    expected = front_matter(text)._replace(tags=clean_tags([names.get(tag, tag) for tag in tags]))
    found = front_matter(after)
    return after if found._replace(length=expected.length) == expected else text


def with_date(text: str, day: str) -> str:
    """Return a text with this date in its front matter, in the place of the date that it has."""
    block = BLOCK.match(text)
    if not block:
        return f"---\ndate: {day}\n---\n{text}"
    sign = " =" if text.startswith("+") else ":"
    lines = block["matter"].splitlines(keepends=True)
    names = [match["name"].lower() if (match := _ENTRY.match(line.rstrip())) else "" for line in lines]
    at = next((names.index(name) for name in _DATES if name in names), None)
    if at is None:
        at = 0
        lines.insert(0, "\n")
        written = "date"
    else:
        written = lines[at][: len(names[at])]
    lines[at] = f"{written}{sign} {day}{lines[at][len(lines[at].rstrip()) :]}"
    return f"{text[: block.start('matter')]}{''.join(lines)}{text[block.end('matter') :]}"


def fact_of(text: str) -> str:
    """Return a text without the title, dates and tags in its front matter, and without white space around it.

    Texts that differ only in their line ends or in how Unicode composes their letters are the same.
    """
    text = normalize("NFC", text.replace("\r\n", "\n"))
    block = BLOCK.match(text)
    body = text[block.end() :].strip() if block else ""
    if not block or not body:
        return text.strip()
    entries = _entries(block["matter"])
    lines = ((name, line.strip()) for name in sorted(entries.keys() - _NOT_COMPARED) for line in entries[name])
    others = [f"{name}: {line}" for name, line in lines if line]
    return "\n".join(["---", *others, "---", body]) if others else body


def claims_of(text: str) -> Set[tuple[str, str]]:
    """Return the titles and dates in the front matter of a text, as written: pairs of `title` or `date` and a value."""
    block = BLOCK.match(text)
    entries = _entries(normalize("NFC", block["matter"].replace("\r\n", "\n"))) if block else {}
    written = ((kind, _unquoted(" ".join(entries.get(name, ())))) for name, kind in _CLAIMS.items())
    return {(kind, value) for kind, value in written if value}


def _rescued(matter: str, length: int) -> FrontMatter:
    """Return the fields that can be read line by line from invalid front matter."""
    entries = _entries(matter[:_LONGEST])
    tags = clean_tags(_items(entries, _TAG_NAMES))
    dates = (_date(_unquoted(entries[name][0])) for name in (*_DATES, *_MODIFIED) if name in entries)
    return FrontMatter(
        length,
        _line(_unquoted(entries["title"][0])) if "title" in entries else None,
        tags,
        next(filter(None, dates), None),
        tuple(filter(None, map(_line, _items(entries, _ALIAS_NAMES, are_words=False)))),
        is_lost=not tags
        and any(_unquoted(line).strip(_AROUND) for name in _TAG_NAMES for line in entries.get(name, ())),
    )


def _items(entries: dict[str, list[str]], names: Sequence[str], *, are_words: bool = True) -> list[str]:
    """Return the values after names and below them: one per line, or separated by commas or, for words, white space."""
    items = list[str]()
    for line in (line for name in names for line in entries.get(name, ())):
        item = _unquoted(line.strip().removeprefix("- "))
        if "," in item:
            items += item.split(",")
        else:
            items += item.split() if are_words and not line.lstrip().startswith("-") else [item]
    return [_unquoted(item.strip(_AROUND)) for item in items]


def _commented(matter: str) -> list[str]:
    """Return the tags that begin with a #, which YAML treats as comments."""
    entries = _entries(matter)
    lines = (line.strip().removeprefix("- ") for name in _TAG_NAMES for line in entries.get(name, ()))
    return [tag for line in lines if line.startswith("#") for tag in line.split() if len(tag) > 1 and tag[0] == "#"]


def _entries(matter: str) -> dict[str, list[str]]:
    """Return the value of each line and its continuation lines, by the line's name in lower case."""
    entries, name = dict[str, list[str]](), ""
    for line in matter.split("\n"):
        if scan := _ENTRY.match(line):
            name = scan["name"].lower()
            entries.setdefault(name, []).append(scan["value"])
        elif name and line[:1] in _GOES_ON:
            entries[name].append(line)
        else:
            name = ""
    return entries


def _unquoted(written: str) -> str:
    """Return a value without quotation marks; empty for YAML's null."""
    value = written.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return "" if _NULL.fullmatch(value) else value


def _values(matter: str, *, is_toml: bool) -> dict[str, object] | None:
    """Return the values by their names in lower case; None if they cannot be parsed."""
    if len(matter) > _LONGEST or (is_toml and any(line.count(".") > _DEEPEST for line in matter.split("\n"))):
        return None
    import yaml  # here, because few notes need it and the engine's start does not

    try:
        values = tomllib.loads(matter) if is_toml else yaml.load(matter, _loader())  # noqa: S506 - a BaseLoader is safe
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return {str(name).lower(): value for name, value in values.items()} if isinstance(values, dict) else None


@cache
def _loader() -> type[yaml.BaseLoader]:
    """Return a loader that makes strings of everything, as written, except null: a tag may be called 2024 or yes."""
    import yaml

    class Loader(yaml.BaseLoader):  # type: ignore[misc] # the library has no types
        pass

    null = "tag:yaml.org,2002:null"
    Loader.add_implicit_resolver(null, _NULL, [*"~nN"])
    Loader.add_constructor(null, lambda *_: None)
    return Loader


def _strings(value: object) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _listed(value: object) -> list[str]:
    """Return the tags of a list, or of a text separated by commas or, failing that, white space."""
    if isinstance(value, str) and "," not in value:
        return value.split()
    return [tag for text in _strings(value) for tag in text.split(",")]


def _line(value: object) -> str | None:
    return (" ".join(value.split()) or None) if isinstance(value, str) else None


def _names(*values: object) -> tuple[str, ...]:
    """Return a document's other names and its authors."""
    return tuple(dict.fromkeys(filter(None, map(_line, (text for value in values for text in _strings(value))))))


def _date(value: object) -> str | None:
    """Return a date as written, or in ISO 8601 if it is one of TOML's own dates."""
    date = _line(value if isinstance(value, str) else getattr(value, "isoformat", str)())
    return date if date and len(date) <= _LONGEST_DATE and date[0].isdigit() else None
