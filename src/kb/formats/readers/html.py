"""HTML: the readable text in reading order, one block per line, cut at its headings.

No readable text is dropped, not even navigation, because a wrong guess about which part of a page matters would lose
text. Text that the page itself hides is left out, except with `aria-hidden`, which hides it only from screen readers.
Style sheets are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from lxml import etree

from kb.api.errors import Unreadable
from kb.formats.text.builder import LONGEST_HEADING, TextBuilder
from kb.formats.text.dates import iso_date
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import Extracted
from kb.formats.text.readings import Readings
from kb.formats.text.titles import meaningful

_UNSEEN: Final = {"head", "script", "style", "template", "noscript", "ix:header", "rp"}
_READING: Final = {"rt", "rtc"}
_HIDING: Final = re.compile(
    r"(?i)(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\s*(?:!\s*important\s*)?(?:;|$)"
)
_DATES: Final = (
    *("article:published_time", "og:published_time", "datepublished", "citation_publication_date", "citation_date"),
    *("dc.date.issued", "dcterms.issued", "dc.date", "dcterms.date", "dcterms.created", "dc.date.created"),
    *("publish-date", "publishdate", "pubdate", "date", "article:modified_time", "datemodified", "dcterms.modified"),
)
"""The names under which pages give their date, the most reliable first."""
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_PARAGRAPHS: Final = {
    *_HEADINGS,
    *("article", "aside", "blockquote", "dl", "fieldset", "figure", "footer", "form", "header", "hr", "main", "menu"),
    *("nav", "ol", "p", "pre", "section", "table", "ul"),
}
_LINES: Final = {
    *("address", "body", "button", "caption", "center", "dd", "details", "dialog", "div", "dt", "figcaption", "legend"),
    *("li", "optgroup", "option", "search", "select", "summary", "td", "text", "textarea", "th", "tr"),
}
_BLOCKS: Final = _PARAGRAPHS | _LINES | {"br"}
_APART: Final = {"nav", "header", "footer", "aside"}
"""Parts of a page whose links belong to the whole site."""

_ELSEWHERE: Final = re.compile(r"(?i)(?:https?|mailto|ftp):\S+\Z")
_EMBEDDED: Final = re.compile(r"\[picture: \S+, \d[\d.]* [kMG]B\]")
"""The placeholder for a picture of more than a few bytes embedded in a page."""

_LONGEST_ADDRESS: Final = 200
"""Longer addresses serve to count clicks."""

_ENTERED: Final = {"date", "datetime-local", "email", "month", "number", "tel", "text", "time", "url", "week"}
"""The types of input fields that show the value entered."""

_DEEPEST_FRAME: Final = 3
_NOTE_MARK: Final = re.compile(r"\[?\d{1,3}\]?|[*†‡§]{1,3}")
_LISTS: Final = {"ul", "ol", "menu"}
# A table row with one of these inside is part of the layout; its cells are not values.
_LAYOUT: Final = ("table", "pre", *_HEADINGS)

_META_CHARSET: Final = re.compile(rb"""(?i)<meta[^>]{0,256}?charset\s*=\s*["']?\s*([\w.:-]+)""")
_XML_ENCODING: Final = re.compile(rb"""\A\s*<\?xml[^>]{0,256}?encoding\s*=\s*["']([\w.:-]+)""")
_SELF_CLOSED: Final = re.compile(
    r"<((?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)[A-Za-z][\w:-]*)((?:\s[^<>]*)?)/>"
)
# libxml2 compares each attribute of an element with every other.
_MOST_ATTRIBUTES: Final = 1000
# libxml2 drops the text after the end of the page, where mail programs and servers add some.
_END_OF_PAGE: Final = re.compile(r"</(?i:html|body)\s*+>")
_OPENING: Final = re.compile(r"""<([A-Za-z][^\s/>]*+)((?:=\s*+"[^"]*+"|=\s*+'[^']*+'|[^>=]++|=)*+)""")
_QUOTED: Final = re.compile(r"""=\s*+(?:"[^"]*+"|'[^']*+')""")
_BETWEEN_ATTRIBUTES: Final = re.compile(r"[\s/]++|=")
_RAW: Final = {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"}
_XHTML: Final = re.compile(r"""\A\s*<\?xml\s|xmlns\s*=\s*["']http://www\.w3\.org/1999/xhtml""")
_SPACES: Final = re.compile(r"[ \t\n\r\f\xa0]+")
_ZERO_WIDTH: Final = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\xad"))


def read(data: bytes) -> Extracted:
    return read_markup(decode_html(data))


def read_markup(markup: str, frames: Sequence[str] = ()) -> Extracted:
    """Read a page, and below it the pages in its frames. Raises the same errors as `read`."""
    text = TextBuilder()
    root = _parsed(expanded(markup) if _XHTML.search(markup[:4096]) else markup)
    if root is not None:
        _Writer(text).write(root)
    for frame in frames:
        text.blank()
        write_fragment(expanded(frame), text, below=0)
    first = next((heading.title for heading in text.headings if heading.level == 1), None)
    page = text.build(meaningful(_title(root)) or first)
    if not page.text:
        raise Unreadable("the page contains no text; in a browser, scripts may load it")
    return replace(page, date=_date(root))


def decode_html(data: bytes) -> str:
    """Return the markup, decoded from its declared or detected encoding."""
    declared = _XML_ENCODING.search(data[:1024]) or _META_CHARSET.search(data[:4096])
    return decode(data, declared[1].decode("ascii") if declared else None)


def write_fragment(markup: str, text: TextBuilder, *, below: int) -> None:
    """Add the readable text of a piece of HTML, with its headings `below` levels deeper."""
    root = _parsed(markup)
    if root is not None:
        _Writer(text, below).write(root)


def expanded(markup: str) -> str:
    """Return XHTML with empty elements (`<title/>`) closed in the HTML way; otherwise they would swallow the rest."""
    return _SELF_CLOSED.sub(r"<\1\2></\1>", markup)


def flat_text(markup: str) -> str:
    root = _parsed(markup)
    return _flat(root) if root is not None else ""


def _most_attributes(markup: str) -> int:
    """Return an upper estimate of the largest number of attributes of an element."""
    most, place = 0, 0
    while tag := _OPENING.search(markup, place):
        if len(tag[2]) > 2 * _MOST_ATTRIBUTES:
            most = max(most, len(_BETWEEN_ATTRIBUTES.findall(_QUOTED.sub(" ", tag[2]))))
        place = tag.end()
        if tag[1].lower() in _RAW and (end := markup.find("</", place)) > 0:
            place = end
    return most


def _parsed(markup: str) -> etree._Element | None:
    if _most_attributes(markup) > _MOST_ATTRIBUTES:
        raise Unreadable(f"kb cannot read the page: one of its elements has more than {_MOST_ATTRIBUTES} attributes")
    # huge_tree raises the limit on nesting from 256: unclosed tags nest deep, and text beyond the limit is lost.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True, no_network=True)
    try:
        root: etree._Element | None = etree.fromstring(_END_OF_PAGE.sub("", markup.replace("\0", "")).encode(), parser)
    except etree.XMLSyntaxError:  # nothing in it but comments or white space
        return None
    if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in parser.error_log):
        raise Unreadable("kb cannot read the whole page: its elements are nested more than 2048 deep")
    return root


def _title(root: etree._Element | None) -> str | None:
    titles = root.iterfind("head/title") if root is not None else ()
    return next((one_line("".join(title.itertext())) or None for title in titles), None)


def _date(root: etree._Element | None) -> str | None:
    """Return the page's own date; other dates on it may refer to anything."""
    dates: dict[str, str] = {}
    for element in root.iter("meta", "time") if root is not None else ():
        name = element.get("property") or element.get("name") or element.get("itemprop") or ""
        date = iso_date(element.get("content") or element.get("datetime") or "")
        if date and name.lower() in _DATES:
            dates.setdefault(name.lower(), date)
    return next((dates[name] for name in _DATES if name in dates), None)


def _is_unseen(element: etree._Element) -> bool:
    """Return whether an element is hidden; a page that is hidden as a whole is shown by a script."""
    if element.tag in _UNSEEN or _is_note_mark(element):
        return True
    is_hidden = element.get("hidden", "until-found").lower() != "until-found" or _HIDING.search(
        element.get("style", "")
    )
    return bool(is_hidden) and element.tag not in {"html", "body"}


def _is_note_mark(element: etree._Element) -> bool:
    """Return whether an element is the number or sign of a note, which would become a part of the word before it."""
    if element.tag != "a" or "#" not in element.get("href", ""):
        return False
    above = element.getparent()
    is_raised = (above is not None and above.tag == "sup") or element.find("sup") is not None
    is_named = "noteref" in f"{element.get('epub:type')} {element.get('role')}"
    return (is_raised or is_named) and _NOTE_MARK.fullmatch(_words_of(element)) is not None


class _Writer:
    """Writes a tree: gathers inline text, and flushes it as a line when a block begins or ends."""

    def __init__(self, text: TextBuilder, below: int = 0, depth: int = 0) -> None:
        self._text = text
        self._below = below
        self._depth = depth
        self._inline: list[str] = []
        self._readings = Readings()
        self._marker = ""
        self._lists = 0
        self._apart = 0
        self._preformatted = 0

    def write(self, root: etree._Element) -> None:
        """Write the text of `root`, without recursion, because pages may nest thousands of levels deep."""
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if event == "end":
                self._end(element)
                self._add(element.tail)
            elif _is_unseen(element) or self._write_whole(element):
                walker.skip_subtree()
            elif element.tag in _READING:
                self._readings.add(_words_of(element))
                walker.skip_subtree()
            else:
                self._start(element)
                self._add(element.text)
        self._flush()

    def _write_whole(self, element: etree._Element) -> bool:
        if element.tag in _HEADINGS:
            title = _flat(element)
            if len(title) > LONGEST_HEADING:  # for example, all text after an unclosed heading
                return False
            self._flush()
            if title:
                self._text.heading(_HEADINGS[element.tag] + self._below, title)
            return True
        if element.tag == "tr" and _is_data(element):
            self._flush()
            if any(values := [_flat(cell, with_links=True) for cell in element if not _is_unseen(cell)]):
                self._text.line(" | ".join(values))
            return True
        return False

    def _start(self, element: etree._Element) -> None:
        tag = element.tag
        self._apart += tag in _APART
        self._flush_at(tag)
        self._lists += tag in _LISTS
        self._preformatted += tag == "pre"
        if tag == "li":
            self._marker = "  " * min(self._lists - 1, 8) + "- "
        elif tag == "br":
            self._break()
        elif tag == "iframe" and self._depth < _DEEPEST_FRAME:
            self._write_frame(element.get("srcdoc", ""))
        self._add(_lead(element))

    def _write_frame(self, markup: str) -> None:
        root = _parsed(markup)
        if root is not None:
            self._flush()
            _Writer(self._text, self._below, self._depth + 1).write(root)

    def _end(self, element: etree._Element) -> None:
        tag = element.tag
        self._apart -= tag in _APART
        if tag == "a" and not self._apart:
            self._add(_address(element))
        if _ends_word(element):
            self._readings.end_word()
        self._flush_at(tag)
        self._lists -= tag in _LISTS
        self._preformatted -= tag == "pre"
        if tag == "li":
            self._marker = ""
        if tag in _PARAGRAPHS and not self._lists:
            self._text.blank()

    def _flush_at(self, tag: str) -> None:
        if tag in _PARAGRAPHS or tag in _LINES:
            self._flush()
        if tag in _PARAGRAPHS and not self._lists:
            self._text.blank()

    def _break(self) -> None:
        if self._preformatted:
            self._add("\n")
        elif not self._flush():
            self._text.blank()

    def _add(self, text: str | None) -> None:
        if text:
            self._inline.append(text if self._preformatted else _SPACES.sub(" ", text))

    def _flush(self) -> bool:
        """Write the line gathered so far, and return whether it contained text."""
        gathered = "".join(self._inline).translate(_ZERO_WIDTH)
        line = gathered.strip("\n").rstrip() if self._preformatted else one_line(gathered)
        self._inline.clear()
        if line:
            self._text.line(self._marker + line + self._readings.take())
            self._marker = ""
        return bool(line)


def _is_data(row: etree._Element) -> bool:
    """Return whether a row contains only cells with values; broken markup puts text between cells."""
    is_layout = next(row.iter(*_LAYOUT), None) is not None
    strays = [row.text, *(cell.tail for cell in row)]
    return len(row) > 1 and not is_layout and not any(text and text.strip() for text in strays)


def _flat(element: etree._Element, *, with_links: bool = False) -> str:
    """Return the text of an element on one line, even if it consists of several blocks."""
    return one_line("".join(_flat_pieces(element, with_links=with_links)).translate(_ZERO_WIDTH))


def _flat_pieces(root: etree._Element, *, with_links: bool) -> Iterator[str]:
    readings = Readings()
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if element.tag in _BLOCKS:
            yield " "
        if event == "end":
            if _ends_word(element):
                readings.end_word()
            yield _address(element) if with_links and element.tag == "a" else ""
            yield (element.tail or "") if element is not root else ""
        elif _is_unseen(element) or _is_permalink(element):
            walker.skip_subtree()
        elif element.tag in _READING:
            readings.add(_words_of(element))
            walker.skip_subtree()
        else:
            yield _lead(element) + (element.text or "")
    yield readings.take()


def _words_of(element: etree._Element) -> str:
    return one_line("".join(element.itertext()).translate(_ZERO_WIDTH))


def _ends_word(element: etree._Element) -> bool:
    """Return whether a word with readings ends here: each of its letters may be an element of its own."""
    if element.tag != "ruby":
        return False
    following = element.getnext()
    return bool((element.tail or "").strip()) or following is None or following.tag != "ruby"


def _lead(element: etree._Element) -> str:
    """Return the text that an element shows before its own, such as an image's description, or a gap between links."""
    if element.tag == "img":
        embedded = element.get("src", "")
        picture = embedded if _EMBEDDED.match(embedded) else ""
        return f" {element.get('alt', '')} {picture} "
    if element.tag == "input" and element.get("type", "text").lower() in _ENTERED:
        return f" {element.get('value', '')} "
    before = element.getprevious()
    follows_link = element.tag == "a" and before is not None and before.tag == "a" and not before.tail
    return " " if follows_link else ""


def _address(link: etree._Element) -> str:
    """Return the address to show after a link's text, if it is another site's and not part of the text."""
    address = link.get("href", "").strip()
    if not _ELSEWHERE.match(address) or len(address) > _LONGEST_ADDRESS:
        return ""
    text = _words_of(link)
    if not text:
        return f" {address} "
    return "" if text.rstrip("/") in address else f" ({address})"


def _is_permalink(element: etree._Element) -> bool:
    """Return whether an element is a one-character link next to a heading, such as # or a pilcrow."""
    is_local = element.tag == "a" and element.get("href", "").startswith("#")
    return is_local and len(_words_of(element)) == 1
