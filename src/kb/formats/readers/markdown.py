"""Markdown (CommonMark): the source itself without its front matter, cut at its headings."""

from __future__ import annotations

import re
from typing import Final

from kb.api.tag_tree import clean_tags
from kb.formats.text.builder import Heading, sections_under
from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Extracted
from kb.formats.text.readings import marked, with_readings_after
from kb.markdown.blocks import blocks_of, headings_of
from kb.markdown.front_matter import front_matter
from kb.markdown.prose import comments, masked, prose
from kb.markdown.signs import without_links
from kb.markdown.tags import tags_of_blocks

_EXPORT_FIELDS: Final = re.compile(r"\n\n(?P<fields>id: [0-9a-f]{32}\n(?:[a-z_]{1,40}:[^\n]*\n)*type_: 1)\s*\Z")
_LONGEST_FIELDS: Final = 20_000
_RUBY: Final = re.compile(r"<ruby\b[^>\n]{0,200}>([^\n]{0,2000}?)</ruby>", re.IGNORECASE)
_FALLBACK: Final = re.compile(r"<rp>[^<]*(?:</rp>)?", re.IGNORECASE)
_READING: Final = re.compile(r"(.*?)<rt\b[^>]*>([^<]*)(?:</rt>)?", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")


def read(data: bytes) -> Extracted:
    """Read a Markdown file; headings inside code, quotes and lists are part of their section.

    Front matter is not text, unless the file contains nothing else. It is replaced by empty lines, so that the line
    numbers below it stay the same as in the file. Obsidian's comments are not text, either.
    """
    source, exported = _without_export_fields(decode(data))
    front = front_matter(source)
    text = source
    is_apart = front.is_understood and bool(source[front.length :].strip())
    if is_apart:
        text = "\n" * source.count("\n", 0, front.length) + source[front.length :]
    begin = 0 if is_apart else front.length
    blocks = list(blocks_of(text, begin))
    inline = tags_of_blocks(text, blocks) if front.inline_tags else ()
    if (shown := _with_readings_after(_without_comments(text))) != text:
        text, blocks = shown, list(blocks_of(shown, begin))
    headings = [Heading(*each) for each in headings_of(blocks)]
    first = next((heading.title for heading in headings if heading.level == 1), None)
    return Extracted(
        front.title or (first and without_links(first)) or first or exported.get("title") or None,
        text,
        sections_under(text, headings),
        tags=clean_tags([*front.tags, *inline]),
        date=front.date or exported.get("user_created_time") or exported.get("created_time"),
        aliases=front.aliases,
        omitted={"front_matter": 1} if front.is_lost else {},
    )


def _without_comments(text: str) -> str:
    """Return a text without its comments, unless it has nothing else. The line numbers stay the same."""
    shown = masked(text, comments(text), "")
    return shown if shown.strip() else text


def _with_readings_after(text: str) -> str:
    """Return a text with the readings over words (ruby) after each line, as in web pages."""
    if "<ruby" not in text:
        return text
    pieces, end = list[str](), 0
    for ruby in _RUBY.finditer(prose(text)):
        words = _READING.sub(lambda word: marked(_TAG.sub("", word[1]), word[2]), _FALLBACK.sub("", ruby[1]))
        pieces += [text[end : ruby.start()], _TAG.sub("", words)]
        end = ruby.end()
    return "\n".join(map(with_readings_after, "".join([*pieces, text[end:]]).split("\n")))


def _without_export_fields(source: str) -> tuple[str, dict[str, str]]:
    """Return a note without the fields that Joplin exports below it, and these fields."""
    match = _EXPORT_FIELDS.search(source[-_LONGEST_FIELDS:])
    if not match:
        return source, {}
    text = source[: len(source) - len(match[0])] + "\n"
    fields = dict(line.partition(": ")[::2] for line in match["fields"].splitlines())
    return text, fields | {"title": text.partition("\n")[0].strip()}
