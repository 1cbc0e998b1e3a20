"""Write safely to standard output: texts and titles may come from others, and terminals obey control characters."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

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
"""For each header a field of the row or a function of it; fields with the suffix `at` are times."""

GAP: Final = "  "
DELETE: Final = 0x7F
C1: Final = range(0x80, 0xA0)
CONTROL_PICTURES: Final = 0x2400
"""The first of Unicode's pictures for the control characters 0 to 31."""

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
"""Invisible characters that reverse, split or hide others.

Joiners are allowed between letters of scripts that need them and between the parts of an emoji, as is the soft hyphen.
"""
_held: Final = ContextVar[list[str] | None]("held", default=None)
"""Output that is held back until it is known whether it needs a pager."""
JSON_ESCAPES: Final = {code: f"\\u{code:04x}" for code in (DELETE, *C1)}


def is_terminal() -> bool:
    return sys.stdout.isatty()


def name_hidden(text: str) -> str:
    """Replace invisible characters with their code points."""
    return HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def escape_controls(text: str) -> str:
    """Make control characters visible, one for one, except for line ends and tabs."""
    return text.translate(CONTROL_ESCAPES)


def to_printable(text: str) -> str:
    """Make control and invisible characters visible, except for line ends and tabs."""
    return name_hidden(escape_controls(text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    return to_printable(" ".join(name_hidden(text).split()))


@contextmanager
def paged() -> Iterator[None]:
    """Show the output of the block in a pager, if standard output is a terminal too small for it."""
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
    """Print the text unchanged, without a line end."""
    buffer = _held.get()
    if buffer is not None:
        buffer.append(text)
        return
    try:
        # Flush, so that a closed pipe is noticed here.
        print(text, end="", flush=True)
    except BrokenPipeError:
        raise pipe_closed() from None


def pipe_closed() -> Exception:
    import typer  # it takes as long as the rest of a short command, and hooks do without it

    from kb_cli.runtime.exit_codes import PIPE_CLOSED

    return typer.Exit(PIPE_CLOSED)


def print_line(text: str) -> None:
    write(f"{to_printable(text)}\n")


def print_text(text: str) -> None:
    """Print the text unchanged; only for a terminal, make control characters visible."""
    if is_terminal():
        write(to_printable(text))
        return
    write_bytes(text.encode())


def write_bytes(content: bytes) -> None:
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise pipe_closed() from None


def print_error(text: str) -> None:
    print(f"kb: {one_line(text)}", file=sys.stderr)


def print_aside(text: str) -> None:
    print(to_printable(text), file=sys.stderr)


def print_json_line(content: object) -> None:
    import json

    write(escape_json(json.dumps(content, ensure_ascii=False)) + "\n")


def print_json(content: object) -> None:
    """Print a JSON document; for a terminal, indented and with control characters escaped."""
    import json

    document = json.dumps(content, ensure_ascii=False, indent=2 if is_terminal() else None)
    write(escape_json(document) + "\n")


def escape_json(document: str) -> str:
    """Escape control and invisible characters of a JSON document; its value stays the same."""
    import json

    return HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], document.translate(JSON_ESCAPES))


def print_styled(*texts: Styled) -> None:
    """Print styled texts, each with a line end; wrap them to the width of a terminal."""
    if is_terminal():
        width = width_of_terminal()
        texts = tuple(line for text in texts for line in text.wrap(width))
    write("".join(f"{text.render()}\n" for text in texts))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]], nothing: str = "") -> None:
    """Print rows: as columns on a terminal, otherwise tab-separated without a header.

    Without rows, print `nothing` on standard error.
    """
    cells = [["" if cell is None else one_line(str(cell)) for cell in row] for row in rows]
    if not cells and nothing:
        print_error(nothing)
    elif is_terminal():
        print_styled(*format_columns([header, *cells]))
    else:
        write("".join("\t".join(row) + "\n" for row in cells))


def print_list(answer: Row, name: str, columns: Columns, nothing: str = "", *, json: bool) -> None:
    """Print a response as JSON, or its rows as a table."""
    if json:
        print_json(answer)
        return
    cells = ([cell(row, column) for column in columns.values()] for row in answer[name])
    print_table(tuple(columns), cells, nothing)


def cell(row: Row, column: str | Callable[[Row], object]) -> object:
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
    """Return whether a cell is an absolute path, whose end is more informative than its beginning."""
    return cell.startswith("/") or cell[1:3] == ":/"


def format_path(path: str, used: int) -> Styled:
    """Return a path in one line; for a terminal as a link, shortened to the columns that `used` leaves."""
    from urllib.parse import quote

    line = one_line(path)
    if not is_terminal():
        return Styled(line)
    link = f"file://{quote(path)}" if is_path(path) else ""
    return Styled(shorten_start(abbreviate_home(line), width_of_terminal() - used), Style(DIM.numbers, link))


def abbreviate_home(path: str) -> str:
    home = Path.home().as_posix()
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def fit_widths(widths: list[int], room: int) -> list[int]:
    """Reduce the largest widths until all fit; of equal ones the rightmost."""
    fitted = list(widths)
    while sum(fitted) > room and max(fitted) > 1:
        largest = max(range(len(fitted)), key=lambda column: (fitted[column], column))
        fitted[largest] -= 1
    return fitted


def print_fields(values: dict[str, object]) -> None:
    """Print names and values, one pair per line, without empty values."""
    shown = {name: one_line(str(value)) for name, value in values.items() if value not in (None, "", [])}
    width = max(map(len, shown), default=0)
    write("".join(f"{name:<{width}}  {value}\n" for name, value in shown.items()))


def document_text(document: dict[str, Any]) -> str:
    return "".join(chunk["text"] for chunk in document["chunks"])


def format_tags(item: dict[str, Any]) -> str:
    return ", ".join(item["tags"])


def format_date(date: str | None) -> str | None:
    """Return a document's own date, with the time of its own time zone if it has one."""
    if date is None:
        return None
    time = date[11:16]
    return date[:10] if time in ("", "00:00") else f"{date[:10]} {time}"


def format_time(stamp: str | None) -> str | None:
    """Return a UTC time of the engine as local time."""
    from datetime import datetime

    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M") if stamp else None
