"""CSV exports of Raindrop and Zotero: each bookmark or source is a document with its tags, date and address."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kb.formats.text.batches import MAX_NAME_CHARS, MAX_PARTS, NOT_IN_NAMES, batches, contents, front_matter_lines
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Attachment, Extracted

_KEY_CHARS: Final = 20

Row = dict[str, str]


class _Program(NamedTuple):
    """A program's columns; `shown` maps each column that the document shows to its label."""

    known_by: frozenset[str]
    name: str
    key: str
    title: str
    date: str
    tags: tuple[str, ...]
    separator: str
    shown: dict[str, str]


_PROGRAMS: Final = (
    _Program(
        frozenset(("id", "title", "note", "excerpt", "url", "folder", "tags", "created")),
        *("Bookmarks", "id", "title", "created", ("tags",), ","),
        {"url": "", "folder": "Folder: ", "excerpt": "", "note": "", "highlights": ""},
    ),
    _Program(
        frozenset(("Key", "Item Type", "Author", "Title", "Publication Title", "Manual Tags")),
        *("Sources", "Key", "Title", "Date", ("Manual Tags", "Automatic Tags"), ";"),
        {
            "Author": "By ",
            "Publication Title": "In ",
            "Publisher": "",
            "DOI": "DOI: ",
            "ISBN": "ISBN: ",
            **dict.fromkeys(("Url", "Abstract Note", "Notes", "Extra"), ""),
        },
    ),
)


def read_references(content: str) -> Extracted | None:
    """Return the rows of an export as attachments; None if a table is not an export."""
    header = frozenset(next(csv.reader([content.partition("\n")[0].removeprefix("\ufeff")]), []))
    program = next((program for program in _PROGRAMS if program.known_by <= header), None)
    if program is None:
        return None
    table = csv.DictReader(io.StringIO(content.removeprefix("\ufeff"), newline=""), restval="")
    rows = [{name: value for name, value in row.items() if isinstance(value, str)} for row in table]
    rows = sorted(filter(lambda row: any(row.values()), rows), key=lambda row: row.get(program.date, ""))
    if not rows:
        return None
    titles = [one_line(clean(row.get(program.title, ""))) for row in rows]
    files = _exports(rows) if len(rows) > MAX_PARTS else (_file(program, row) for row in rows)
    return contents(program.name, f"{len(rows)} {program.name.lower()}", titles, files)


def _exports(rows: Sequence[Row]) -> Iterator[Attachment]:
    """Yield smaller exports, with the oldest rows together, so that later exports contain the same ones."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for batch in batches(rows):
        part = io.StringIO(newline="")
        writer = csv.DictWriter(part, columns, restval="")
        writer.writeheader()
        writer.writerows(batch.items)
        yield Attachment(f"{batch.first:05}-{batch.last:05}.csv", part.getvalue().encode("utf-8", "replace"))


def _file(program: _Program, row: Row) -> Attachment:
    title = one_line(clean(row.get(program.title, "")))
    tags = [tag.strip() for column in program.tags for tag in row.get(column, "").split(program.separator)]
    fields = {"title": title, "date": row.get(program.date, ""), "tags": [tag for tag in tags if tag]}
    body = "\n\n".join(
        before + row[name].strip() for name, before in program.shown.items() if row.get(name, "").strip()
    )
    name = one_line(NOT_IN_NAMES.sub(" ", f"{title[:MAX_NAME_CHARS]} {row.get(program.key, '')[-_KEY_CHARS:]}"))
    text = f"{front_matter_lines(fields)}# {title}\n\n{body}\n"
    return Attachment(f"{name}.md", text.encode("utf-8", "replace"))
