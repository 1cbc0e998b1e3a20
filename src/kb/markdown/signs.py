"""The signs of Markdown that an excerpt does without, such as the brackets of links and the pipes of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from kb.markdown.links import WIKI
from kb.markdown.prose import comments, masked, without_code

MARKDOWN: Final = ("note", "markdown")
"""The types of documents whose texts are Markdown."""

BOXES: Final = {" ": "☐ ", "x": "☑ ", "X": "☑ ", "-": "☒ ", "/": "◪ "}
"""The signs of tasks: open, done, cancelled, begun."""

CELL: Final = " · "

_LINE: Final = re.compile(
    r"^[ \t]*(?:>[ \t]?)*(?:\[![\w-]{1,40}\][+-]?[ \t]*)?(?:#{1,6}[ \t]+|(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\[[ xX/-]\] ))?"
    r"|`{3}[\w+-]*|^[ \t]*~~~\w*[ \t]*$|[ \t]\^[A-Za-z0-9-]{1,100}[ \t]*$",
    re.MULTILINE,
)
"""Signs of blocks."""

_TASK: Final = re.compile(r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(\[([ xX/-])\] )", re.MULTILINE)
_ROW: Final = re.compile(r"^[ \t>]*\|.*\|[ \t]*$", re.MULTILINE)
_RULE: Final = re.compile(r"[\s|:-]*-{3,}[\s|:-]*")
_PIPE: Final = re.compile(r"[ \t]*(?<!\\)\|[ \t]*")
_LINK: Final = re.compile(
    r"(!?\[)[^\[\]\n]{1,500}(\]\([^()\s]{1,1000}(?:\([^()\s]{0,500}\))?(?: \"[^\"\n]{0,500}\")?\))"
)
_WORDS: Final = re.compile(r"==(?=[^\s=])|(?<=[^\s=])==(?!=)|%%|\[\^[^\]\s]{1,100}\]:?")


_EMBED: Final = re.compile(rf"(?=!){WIKI.pattern}|!\[[^\[\]\n]{{0,500}}\]\((?P<place>[^()\n]{{0,1000}})\)")

_LETTER: Final = r"[^\W_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]"
"""A letter or digit of a script with spaces between words."""

_EMPHASIS: Final = re.compile(
    rf"(?<!{_LETTER})(?<!\\)(?P<open>(?P<sign>(?<!\*)\*|(?<!_)_)(?P=sign){{0,2}})(?!(?P=sign))"
    rf"(?P<inner>\S(?:[^\n]{{0,300}}?\S)??)(?<!\\)(?<!(?P=sign))(?P<close>(?P=open))(?!{_LETTER})(?!(?P=sign))"
)
"""Signs around words. In `2 * 3 * 4` and in `snake_case`, they are text."""


def plain_line(line: str) -> str:
    """Return a line without its signs and embeds."""
    text = _EMBED.sub(" ", line)
    shown = replacements(text)
    return "".join(shown.get(at, character) for at, character in enumerate(text)).lstrip("".join(BOXES.values()))


def ticked(line: str) -> str | None:
    """Return the line of a task as done, or as open again; None for another line."""
    task = _TASK.match(line)
    return f"{line[: task.start(2)]}{' ' if task[2] in 'xX' else 'x'}{line[task.end(2) :]}" if task else None


def embed_name(line: str) -> str:
    """Return the name of the first file that a line embeds; empty if it embeds none."""
    embed = _EMBED.search(line)
    target = (embed["inner"] or embed["place"] or "").partition("|")[0] if embed else ""
    target = target.partition(' "')[0]
    return unquote(target.strip("<> ").rpartition("/")[2])


def without_links(text: str) -> str:
    """Return a text with the names of its [[links]] in place of the links, and without embeds."""
    text = _EMBED.sub(" ", text)
    return " ".join(masked(text, _wiki_signs(text), "").split())


def addresses(text: str) -> list[range]:
    """Return the positions of each address of a [text](address)."""
    return [range(*link.span(2)) for link in _LINK.finditer(text)]


def replacements(text: str) -> dict[int, str]:
    """Return the replacements of the characters of signs, by position; most are empty."""
    shown = dict.fromkeys((at for begin, end in _signs(text) for at in range(begin, end)), "")
    for task in _TASK.finditer(text) if "] " in text else ():
        shown |= dict.fromkeys(range(*task.span(1)), "") | {task.start(1): BOXES[task[2]]}
    for row in _ROW.finditer(text) if "|" in text else ():
        is_rule = _RULE.fullmatch(row[0])
        pipes = list(_PIPE.finditer(text, *row.span()))
        for pipe in pipes:
            shown |= dict.fromkeys(range(*pipe.span()), "")
        shown |= {pipe.start(): CELL for pipe in pipes[1:-1]}
        shown |= dict.fromkeys(range(*row.span()), "") if is_rule else {}
    return shown


def _signs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of signs."""
    yield from (sign.span() for sign in _LINE.finditer(text))
    if "==" in text or "%%" in text or "[^" in text:
        yield from (sign.span() for sign in _WORDS.finditer(text))
    yield from comments(text)
    if "*" in text or "_" in text:
        yield from _emphasis(without_code(text), 0, len(text))
    if "[" in text:
        yield from (span for link in _LINK.finditer(text) for span in (link.span(1), link.span(2)))
        yield from _wiki_signs(text)


def _emphasis(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the signs that make words bold or italic."""
    for pair in _EMPHASIS.finditer(text, begin, end):
        yield pair.span("open")
        yield from _emphasis(text, *pair.span("inner"))
        yield pair.span("close")


def _wiki_signs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the signs of [[links]]."""
    for link in WIKI.finditer(text):
        name, bar, alias = link["inner"].partition("|")
        is_size = alias.strip().replace("x", "").isdecimal()
        begin, end = link.span("inner")
        if bar and is_size:
            end = begin + len(name)
        elif alias:
            begin += len(name) + 1
        yield link.start(), begin
        yield end, link.end()
