"""Jupyter notebooks: the cells in order, Markdown with its headings, code, and the code's output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from kb.api.errors import Unreadable
from kb.formats.readers.html import write_fragment
from kb.formats.text.base64_data import embedded_text
from kb.formats.text.builder import Heading, TextBuilder, sections_under
from kb.formats.text.encoding import clean, decode, one_line
from kb.formats.text.extracted import Extracted
from kb.formats.text.terminal import without_terminal_signs
from kb.formats.text.titles import meaningful
from kb.markdown.blocks import blocks_of, headings_of

_OLD_KINDS: Final = (
    *(("text/plain", "text"), ("text/html", "html"), ("text/latex", "latex"), ("image/png", "png")),
    *(("image/jpeg", "jpeg"), ("image/svg+xml", "svg")),
)
"""The names of types in text-only outputs, and in all outputs of notebooks of format 3."""

_OBJECT: Final = re.compile(r"<[\w.]+[^<>]*>")


def read(data: bytes) -> Extracted:
    notebook = _parsed(data)
    text, headings, start = [], list[Heading](), 0
    for is_prose, piece in _pieces(notebook):
        if is_prose:
            headings += [Heading(start + at, level, title) for at, level, title in headings_of(blocks_of(piece))]
        text.append(f"{piece}\n\n")
        start += len(text[-1])
    first = next((heading.title for heading in headings if heading.level == 1), None)
    whole = "".join(text)
    return Extracted(_title(notebook) or first, whole, sections_under(whole, headings))


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(decode(data))
    except (ValueError, RecursionError) as error:
        raise Unreadable("the notebook is damaged: its JSON is incomplete or invalid") from error
    if not isinstance(notebook, dict):
        raise Unreadable("the notebook is damaged: it has no cells")
    return notebook


def _title(notebook: dict[str, Any]) -> str | None:
    metadata = notebook.get("metadata")
    title = metadata.get("title") if isinstance(metadata, dict) else None
    return meaningful(title) if isinstance(title, str) else None


def _pieces(notebook: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield the texts of the cells and of their outputs, each with whether it is Markdown."""
    sheets = [notebook, *_dicts(notebook.get("worksheets"))]  # notebooks of format 3 have their cells in worksheets
    for cell in (cell for sheet in sheets for cell in _dicts(sheet.get("cells"))):
        kind = cell.get("cell_type")
        source = _joined(cell.get("source", cell.get("input")))
        if kind == "heading":  # notebooks of format 3
            source, kind = f"# {source}", "markdown"
        if source.strip():
            yield kind == "markdown", source.strip("\n")
        for output in filter(None, map(_output, _dicts(cell.get("outputs")))):
            yield False, output


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return one_line(without_terminal_signs(f"{output.get('ename')}: {output.get('evalue')}"))
    shown = output.get("data")
    data = shown if isinstance(shown, dict) else {kind: output[name] for kind, name in _OLD_KINDS if name in output}
    pictures = [_picture(kind, _joined(data[kind])) for kind in data if kind.startswith("image/")]
    return "\n".join(filter(None, [without_terminal_signs(_words(data)).strip("\n"), *pictures]))


def _words(data: dict[str, Any]) -> str:
    """Return an output's text; if the text only names an object, the text of its HTML."""
    texts = (_joined(data[kind]) for kind in ("text/markdown", "text/plain", "text/latex") if kind in data)
    text = next((text for text in texts if text.strip()), "")
    page = _joined(data.get("text/html"))
    if not page or (text and not _OBJECT.fullmatch(text.strip())):
        return text
    builder = TextBuilder()
    write_fragment(page, builder, below=0)
    return builder.build().text or text


def _picture(kind: str, data: str) -> str:
    """Return the text for a picture; long base64 data has been replaced already."""
    if data.lstrip().startswith("["):
        return data.strip()
    return embedded_text(kind, len(data) if kind == "image/svg+xml" else 3 * len(data) // 4) if data else ""


def _joined(source: object) -> str:
    """Return a text, which may be stored as a list of its lines."""
    lines = source if isinstance(source, list) else [source]
    return clean("".join(line for line in lines if isinstance(line, str)))


def _dicts(items: object) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
