"""Extract the main text of a web page. `python -m kb_cli.sync.article ADDRESS` reads a page and prints the result.

trafilatura identifies the main texts. This module then prunes the page's own markup, which keeps headings, lists,
tables, code and links. It removes the surroundings of the main texts, and the boxes within them that only contain
links. It runs in a process of its own because a hostile page can take forever.
"""

from __future__ import annotations

import codecs
import logging
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from lxml import html
from lxml.html import HtmlElement
from lxml.html.builder import H1, HEAD, HTML, META, TITLE, P
from trafilatura import bare_extraction
from trafilatura.metadata import extract_metadata
from trafilatura.utils import decode_file

from kb.parser.drop_privileges import confine, limit
from kb_cli.sync.web_fetch import decoded

if TYPE_CHECKING:
    from trafilatura.settings import Document

SECONDS: Final = 20
MEMORY: Final = 2 << 30

LEAST_TEXT: Final = 200
LEAST_SHARE: Final = 0.05
"""If the main text is shorter than this, in characters or as a share of the page, it was not recognised."""

LEAST_OF_BOX: Final = 0.2
MAIN_SHARE: Final = 0.9
MOST_OF_LINKS: Final = 0.5
MENU_SHARE: Final = 0.9
"""A list is a menu if this share of its text is links. Used if neither a main text nor an article is found."""

LONG: Final = 25
"""Minimum length of a substring match: shorter texts, such as menu entries, may match by chance."""

_PERMALINKS: Final = " ¶#§"
_DECLARATIONS: Final = (
    "//meta/@content | //script[@type='application/ld+json']/text() | //time/@datetime | //*[@rel='author']/text()"
)
_DOCTYPE: Final = "<!DOCTYPE html>"
_META_CHARSET: Final = re.compile(rb"""(?i)<meta[^>]{0,256}?charset\s*=\s*["']?\s*([\w.:-]+)""")
# The parser drops everything after the end of the page.
_END_OF_PAGE: Final = re.compile(r"(?i)</(?:html|body)\s*+>")
_SPACES: Final = re.compile(r"\s+")
_UNSEEN: Final = ("script", "style", "template", "noscript", "iframe")
_SKIP_LINKS: Final = ".//a[starts-with(@href, '#') and (contains(@class, 'skip') or contains(@class, 'jump-link'))]"
_BESIDE: Final = "ancestor::aside or ancestor::footer or ancestor::nav"
_ARTICLES: Final = f".//article[not(ancestor::article or {_BESIDE})]"
_MAINS: Final = ".//main | .//*[@role='main'][not(ancestor-or-self::main)]"
_OUTSIDE: Final = f".//text()[normalize-space() and not(ancestor::article or {_BESIDE})]"
_MENUS: Final = ".//nav | .//*[@role='navigation'] | .//*[@role='menu']"
_LINKS: Final = {"a", "button"}
_APART: Final = {"aside", "dialog", "footer", "form", "header", "nav"}
_BOXES: Final = {
    *("article", "blockquote", "center", "details", "div", "dl", "fieldset", "figure", "main", "ol", "section"),
    *("table", "ul", *_APART),
}
_LINES: Final = {
    *("address", "caption", "dd", "dt", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "pre", "summary"),
    *("td", "th", "tr"),
}


def main() -> None:
    """Read a page from standard input and print its main part, if any."""
    limit(MEMORY, cpu=SECONDS)
    logging.disable()
    confine()
    page = readable(decode_markup(sys.stdin.buffer.read()), sys.argv[1])
    sys.stdout.buffer.write((page or "").encode("utf-8", "replace"))


def decode_markup(data: bytes) -> str:
    """Return the text of a page, decoded as UTF-8, with the declared encoding, or with a detected one."""
    text = data.decode("utf-8-sig", "replace")
    if data.startswith(codecs.BOM_UTF8) or decoded(data, "utf-8") is not None or _is_damaged_utf_8(text):
        return text
    declared = _META_CHARSET.search(data[:4096])
    named = decoded(data, declared[1].decode()) if declared else None
    return decode_file(data) if named is None else named


def _is_damaged_utf_8(text: str) -> bool:
    """Return whether a text decoded as UTF-8 is UTF-8 with a few damaged bytes; no other encoding decodes so well."""
    bad = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", "ignore")) - bad >= 10 * bad


def readable(markup: str, address: str) -> str | None:
    """Return a page reduced to its main part; None if neither a main part nor a menu to remove was found.

    An article that the page marks as such counts, however short. If a page is too short to judge, only its menus go.
    """
    markup = _END_OF_PAGE.sub("", markup)
    page = _parsed(markup)
    body, article = page.find("body"), _find(markup, address)
    if body is None:
        return None
    declared = "\n".join(page.xpath(_DECLARATIONS))
    for unseen in [*page.iter(*_UNSEEN), *body.xpath(_SKIP_LINKS)]:
        unseen.drop_tree()
    pruning = _Pruning(article)
    share = pruning.measure(body)
    if article is not None and share.counted >= max(LEAST_TEXT, LEAST_SHARE * share.shown):
        pruning.prune(body)
    elif not (_keep_article(body) or pruning.drop_menus(body)):
        return None
    return _page(article or extract_metadata(markup, address), page, body, declared)


def _keep_article(body: HtmlElement) -> bool:
    """Reduce a page to its marked articles, without their menus; return whether it has any."""
    articles = _articles(body)
    for article in articles:
        for menu in [menu for menu in article.xpath(_MENUS) if menu is not article]:
            menu.drop_tree()
    if articles:
        for child in list(body):
            body.remove(child)
        body.text = None
    for article in articles:
        article.tail = None
        body.append(article)
    return bool(articles)


def _articles(body: HtmlElement) -> list[HtmlElement]:
    """Return the marked articles of a page, or its main elements if these contain more text than the articles."""
    articles, mains = ([element for element in body.xpath(path) if _flat(element)] for path in (_ARTICLES, _MAINS))
    return mains if not articles or any(main.xpath(_OUTSIDE) for main in mains) else articles


def _parsed(markup: str) -> HtmlElement:
    # huge_tree raises the nesting limit; below that limit the parser would lose text.
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    return html.document_fromstring(markup.encode("utf-8", "replace"), parser=parser)


def _find(markup: str, address: str) -> Document | None:
    """Return the main text that trafilatura finds, with comments, favouring recall."""
    dates = {"extensive_search": False, "original_date": True}
    document = bare_extraction(
        markup, url=address, favor_recall=True, include_comments=True, with_metadata=True, date_extraction_params=dates
    )
    return None if isinstance(document, dict) else document


class _Share(NamedTuple):
    """The numbers of visible characters, main-text characters and link characters of an element."""

    shown: int = 0
    counted: int = 0
    linked: int = 0

    def plus(self, other: _Share) -> _Share:
        return _Share(self.shown + other.shown, self.counted + other.counted, self.linked + other.linked)


class _Pruning:
    """Removes the boxes around the main text of a page, and the link boxes within it."""

    def __init__(self, document: Document | None) -> None:
        bodies = [body for body in (document.body, document.commentsbody) if body is not None] if document else []
        self._texts = {_flat(element) for body in bodies for element in body.iter()}
        self._text = "\n".join(map(_flat, bodies))
        self._shares: dict[HtmlElement, _Share] = {}

    def measure(self, element: HtmlElement, *, is_link: bool = False) -> _Share:
        """Return the share of an element, and store it for all elements inside."""
        share, line = _Share(), list[tuple[str, bool]]()
        for piece, links in _pieces(element, is_link=is_link):
            if isinstance(piece, str):
                line.append((piece, links))
            else:
                share = share.plus(self._share(line)).plus(self.measure(piece, is_link=links))
                line.clear()
        self._shares[element] = share.plus(self._share(line))
        return self._shares[element]

    def prune(self, element: HtmlElement, *, within: bool = False) -> None:
        """Prune the contents of an element; `within` is set inside the element with most of the main text."""
        share = self._shares[element]
        blocks = [piece for piece, _ in _pieces(element) if not isinstance(piece, str)]
        within = within or not any(self._shares[block].counted > MAIN_SHARE * share.counted for block in blocks)
        for block in blocks:
            if block.tag in _BOXES and self._is_around(block, within=within):
                block.drop_tree()
            else:
                self.prune(block, within=within)

    def drop_menus(self, body: HtmlElement) -> bool:
        """Drop the menus of a measured page unless nothing else would be left; return whether any were dropped."""
        menus = [menu for menu in body.xpath(_MENUS) if menu in self._shares]
        menus += [box for box in body.iter("ul", "ol") if self._is_menu(box)]
        outer = [menu for menu in menus if not any(above in menus for above in menu.iterancestors())]
        if not outer or sum(self._shares[menu].shown for menu in outer) >= self._shares[body].shown:
            return False
        for menu in outer:
            menu.drop_tree()
        return True

    def _is_menu(self, box: HtmlElement) -> bool:
        share = self._shares.get(box)
        return share is not None and 0 < MENU_SHARE * share.shown <= share.linked

    def _is_around(self, box: HtmlElement, *, within: bool) -> bool:
        share = self._shares[box]
        if share.counted > LEAST_OF_BOX * share.shown:
            return False
        if within and box.find(".//pre") is not None:
            return False
        leads_elsewhere = (
            share.linked > MOST_OF_LINKS * share.shown or box.tag in _APART or box.find(".//form") is not None
        )
        return leads_elsewhere or not within

    def _share(self, line: list[tuple[str, bool]]) -> _Share:
        text = _SPACES.sub("", "".join(piece for piece, _ in line))
        linked = sum(len(_SPACES.sub("", piece)) for piece, is_link in line if is_link)
        counts = text in self._texts or (len(text) >= LONG and text in self._text)
        return _Share(len(text), len(text) if counts else 0, linked)


def _pieces(element: HtmlElement, *, is_link: bool = False) -> Iterator[tuple[str | HtmlElement, bool]]:
    """Yield the text directly in an element and the blocks in between, each with a flag for links."""
    yield element.text or "", is_link
    for child in element:
        links = is_link or child.tag in _LINKS
        if child.tag in _BOXES or child.tag in _LINES:
            yield child, is_link
        elif isinstance(child.tag, str):
            yield from _pieces(child, is_link=links)
        yield child.tail or "", is_link


def _flat(element: HtmlElement) -> str:
    return _SPACES.sub("", "".join(element.itertext()))


def _page(document: Document, original: HtmlElement, body: HtmlElement, declared: str) -> str:
    """Return a page with a title, the metadata that the original declares, and a body."""
    title, heading = _title(document, original, body)
    authors = [author for author in (document.author or "").split("; ") if author and author in declared]
    date = document.date if document.date and document.date in declared else None
    named = {"author": ", ".join(authors), "og:site_name": document.sitename, "article:published_time": date}
    metas = [META(name=name, content=value) for name, value in named.items() if value]
    if heading is not None:
        heading.drop_tree()
    origin = " · ".join(filter(None, named.values()))
    body[:0] = [H1(title), *([P(origin)] if origin else [])]
    page = HTML(HEAD(META(charset="utf-8"), TITLE(title), *metas), body)
    return str(html.tostring(page, encoding="unicode", doctype=_DOCTYPE))


def _title(document: Document, original: HtmlElement, body: HtmlElement) -> tuple[str, HtmlElement | None]:
    """Return the title, without the site's name if possible, and the heading with the same text."""
    own = " ".join((original.findtext(".//title") or "").split())
    title = (document.title or "").strip(_PERMALINKS)
    same = (heading for heading in body.iter("h1") if _flat(heading).strip(_PERMALINKS) == _SPACES.sub("", title))
    heading = next(same, None)
    is_sites = title == document.sitename or (own.endswith(title) and heading is None)
    return (own, None) if own and (is_sites or title not in own) else (title, heading)


if __name__ == "__main__":
    main()
