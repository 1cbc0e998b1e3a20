"""What goes to standard output, safely: texts and titles are others' words, and a terminal obeys some of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import typer

from kb_cli.runtime.exit_codes import PIPE_CLOSED
from kb_cli.runtime.terminal_styles import (
    BOLD,
    DIM,
    PLAIN,
    Style,
    Styled,
    shorten,
    shorten_start,
    text_width,
    width_of_terminal,
)

Row = dict[str, Any]
Columns = Mapping[str, str | Callable[[Row], object]]
"""By their headers, each a field of a row or what is made of a row; fields that end in `at` are times."""

GAP: Final = "  "
DELETE: Final = 0x7F
C1: Final = range(0x80, 0xA0)
CONTROL_PICTURES: Final = 0x2400
"""Where Unicode has a picture for each control character from 0 to 31."""

CONTROL_ESCAPES: Final = (
    {code: CONTROL_PICTURES + code for code in range(32) if chr(code) not in "\n\t"}
    | {DELETE: "␡"}
    | dict.fromkeys(C1, "\N{REPLACEMENT CHARACTER}")
)
HIDDEN: Final = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    r"|(?<![^\x00-\x7f\s\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\s])"
)
"""Characters without a shape that turn, part or hide others. Joiners between letters of the scripts that need them, and
between the parts of one emoji, are none, nor is the soft hyphen."""
_held: Final = ContextVar[list[str] | None]("held", default=None)
"""What is printed while it is not known yet whether it needs a pager."""
JSON_ESCAPES: Final = {code: f"\\u{code:04x}" for code in (DELETE, *C1)}


def is_terminal() -> bool:
    """Return whether a person reads standard output as it comes."""
    return sys.stdout.isatty()


def name_hidden(text: str) -> str:
    """Show characters that nobody sees by their number."""
    return HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def escape_controls(text: str) -> str:
    """Make control characters visible, one for one, but for line ends and tabs."""
    return text.translate(CONTROL_ESCAPES)


def to_printable(text: str) -> str:
    """Make control and hidden characters visible, but for line ends and tabs."""
    return name_hidden(escape_controls(text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """Return the text in one line, control characters made visible."""
    return to_printable(" ".join(name_hidden(text).split()))


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed meanwhile in a pager, if a person reads it and the terminal has no room for it."""
    if not (is_terminal() and sys.stdin.isatty()):
        yield
        return
    token = _held.set([])
    try:
        yield
    finally:
        text = "".join(_held.get() or ())
        _held.reset(token)
        from kb_cli.runtime import pager

        if pager.has_room(text) or not pager.show(text):
            write(text)


def write(text: str) -> None:
    """Print the text as it is, without a line end."""
    buffer = _held.get()
    if buffer is not None:
        buffer.append(text)
        return
    try:
        # At once, so that a closed pipe is met here.
        print(text, end="", flush=True)
    except BrokenPipeError:
        raise typer.Exit(PIPE_CLOSED) from None


def print_line(text: str) -> None:
    """Print a line."""
    write(f"{to_printable(text)}\n")


def print_text(text: str) -> None:
    """Print the text as it is; only a terminal gets it with control characters made visible."""
    if is_terminal():
        write(to_printable(text))
        return
    write_bytes(text.encode())


def write_bytes(content: bytes) -> None:
    """Print bytes as they are."""
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise typer.Exit(PIPE_CLOSED) from None


def print_error(text: str) -> None:
    """Print a line on standard error."""
    print(f"kb: {one_line(text)}", file=sys.stderr)


def print_aside(text: str) -> None:
    """Print lines on standard error."""
    print(to_printable(text), file=sys.stderr)


def print_json_line(content: object) -> None:
    """Print one JSON document in one line."""
    import json

    write(escape_json(json.dumps(content, ensure_ascii=False)) + "\n")


def print_json(content: object) -> None:
    """Print one JSON document; indented for a person, and without characters that a terminal obeys."""
    import json

    document = json.dumps(content, ensure_ascii=False, indent=2 if is_terminal() else None)
    write(escape_json(document) + "\n")


def escape_json(document: str) -> str:
    """Write control and hidden characters of a JSON document as JSON can, which reads the same."""
    import json

    return HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], document.translate(JSON_ESCAPES))


def print_styled(*texts: Styled) -> None:
    """Print texts with styles, each with a line end; a terminal gets lines of its width."""
    if is_terminal():
        width = width_of_terminal()
        texts = tuple(line for text in texts for line in text.wrap(width))
    write("".join(f"{text.render()}\n" for text in texts))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], nothing: str = "") -> None:
    """Print rows: in columns on a terminal, otherwise with tabs between the cells and no header.

    Where there are none, standard error says so: `nothing`.
    """
    cells = [["" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    if not cells and nothing:
        print_error(nothing)
    elif is_terminal():
        print_styled(*format_columns([header, *cells]))
    else:
        write("".join("\t".join(row) + "\n" for row in cells))


def print_list(answer: Row, name: str, columns: Columns, nothing: str = "", *, json: bool) -> None:
    """Print an answer as JSON, or for a person the rows that it has under a name, as a table."""
    if json:
        print_json(answer)
        return
    cells = ([_cell(row, column) for column in columns.values()] for row in answer[name])
    print_table(tuple(columns), cells, nothing)


def _cell(row: Row, column: str | Callable[[Row], object]) -> object:
    if not isinstance(column, str):
        return column(row)
    return format_time(row[column]) if column == "at" or column.endswith("_at") else row.get(column)


def format_columns(rows: Sequence[Sequence[str]]) -> Iterator[Styled]:
    """Yield the rows as lines of the terminal's width; the first is the header."""
    widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    fitted = fit_widths(widths, width_of_terminal() - len(GAP) * (len(widths) - 1))
    for number, row in enumerate(rows):
        cells = (
            shorten(shorten_start(cell, width) if is_path(cell) else cell, width)
            for cell, width in zip(row, fitted, strict=True)
        )
        yield Styled(GAP.join(cells).rstrip(), PLAIN if number else BOLD)


def is_path(cell: str) -> bool:
    """Return whether it is the whole path of a file, whose end tells more than its beginning."""
    return cell.startswith("/") or cell[1:3] == ":/"


def format_path(path: str, used: int) -> Styled:
    """Return a path in one line; on a terminal as much of its end as has room behind `used` columns, to click on."""
    from urllib.parse import quote

    line = one_line(path)
    if not is_terminal():
        return Styled(line)
    link = f"file://{quote(path)}" if is_path(path) else ""
    return Styled(shorten_start(abbreviate_home(line), width_of_terminal() - used), Style(DIM.numbers, link))


def abbreviate_home(path: str) -> str:
    """Return a path with `~` in the place of the user's own folder."""
    home = Path.home().as_posix()
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def fit_widths(widths: list[int], room: int) -> list[int]:
    """Reduce the largest widths until all have room; of equal ones those to the right."""
    fitted = list(widths)
    while sum(fitted) > room and max(fitted) > 1:
        largest = max(range(len(fitted)), key=lambda column: (fitted[column], column))
        fitted[largest] -= 1
    return fitted


def print_fields(values: dict[str, object]) -> None:
    """Print names and values, one pair a line; what is empty is left out."""
    shown = {name: one_line(str(value)) for name, value in values.items() if value not in (None, "", [])}
    width = max(map(len, shown), default=0)
    write("".join(f"{name:<{width}}  {value}\n" for name, value in shown.items()))


def document_text(document: dict[str, Any]) -> str:
    """Return the document's text."""
    return "".join(chunk["text"] for chunk in document["chunks"])


def format_tags(item: dict[str, Any]) -> str:
    """Return the item's tags in one line."""
    return ", ".join(item["tags"])


def format_date(date: str | None) -> str | None:
    """Return the date that a document gives itself, with the time of its own clock if it names one."""
    if date is None:
        return None
    time = date[11:16]
    return date[:10] if time in ("", "00:00") else f"{date[:10]} {time}"


def format_time(stamp: str | None) -> str | None:
    """Return a time of the engine's, which is UTC, as the clock here showed it."""
    from datetime import datetime

    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M") if stamp else None
