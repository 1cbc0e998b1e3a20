"""The guide at `/help`: the Markdown pages of `docs/`, in the layout of the web interface."""

import asyncio
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kb.markdown.blocks import text_of
from kb_web.pages import redirect, render
from kb_web.sessions import Visit

FOLDERS: Final = (Path(__file__).with_name("guide"), Path(__file__).parents[2] / "docs")
"""The pages in an installed package, and in a checkout."""

FIRST: Final = "README.md"
TYPES: Final = (".md", ".png", ".svg")
COMMENT: Final = re.compile(r"(?ms)^<!--.*?-->\n")
FOREIGN: Final = re.compile("https?://|mailto:")
TAKEN: Final = {
    "all-tag", "care", "drop", "facets", "groups", "keys", "keys-title", "known-tags", "main", "many", "opened",
    "options", "palette", "preview", "q", "results", "searches", "sent", "status",
}  # fmt: skip
"""Ids that the layout and its scripts use."""

LONGEST_QUERY: Final = 200


@dataclass(slots=True)
class Section:
    """A heading with the text and the links below it."""

    heading: str
    anchor: str
    level: int
    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Target and text of each link to another page of the guide."""


@dataclass(frozen=True, slots=True)
class GuidePage:
    name: str
    html: Markup
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        return self.sections[0].heading


async def start(request: Request, visit: Visit) -> Response:
    return redirect(visit, "help/")


async def show(request: Request, visit: Visit) -> Response:
    """Return a page or a picture of the guide, or the results of a search.

    The guide needs no key, because it explains how to sign in. Only visitors with access make the model work.

    Raises:
        HTTPException: the guide has no such page.
    """
    path, query = request.path_params["path"], request.query_params.get("q", "")[:LONGEST_QUERY]
    picture = files().get(path)
    if picture is not None and picture.suffix != ".md":
        return FileResponse(picture)
    has_access = await visit.has_access()
    if has_access:
        request.app.state.guide.prepare()
    page = await asyncio.to_thread(page_named, path or FIRST.removesuffix(".md"))
    first = await asyncio.to_thread(page_named, FIRST.removesuffix(".md"))
    if page is None or first is None:
        raise HTTPException(404)
    search = partial(request.app.state.guide.search, query, by_meaning=has_access)
    results = await asyncio.to_thread(search) if query.strip() else None
    return render(request, "guide.html", page=page, sections=first.sections, query=query, results=results)


@cache
def files() -> dict[str, Path]:
    """Return the guide's pages and pictures by their path in it. No other file is ever served."""
    folder = next((folder for folder in FOLDERS if (folder / FIRST).is_file()), None)
    if folder is None:
        return {}
    return {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*")) if file.suffix in TYPES}


def pages() -> list[GuidePage]:
    return [page for name in files() if name.endswith(".md") and (page := page_named(name.removesuffix(".md")))]


def page_named(name: str) -> GuidePage | None:
    """Return a page, rendered again if its file has changed; None if the guide has no such page."""
    file = files().get(f"{name}.md")
    with suppress(FileNotFoundError):  # an upgrade may remove pages while kb runs
        return _page(name, file, file.stat().st_mtime_ns) if file else None
    return None


@lru_cache(256)
def _page(name: str, file: Path, _changed: int) -> GuidePage:
    parser = _parser()
    tokens = parser.parse(COMMENT.sub("", file.read_text("utf-8")))
    sections = tuple(_sections(tokens, posixpath.dirname(name))) or (Section(name, "", 1),)
    return GuidePage(name, Markup(parser.renderer.render(tokens, parser.options, {})), sections)  # noqa: S704 - ours


def _parser() -> Any:  # noqa: ANN401 - the library is loaded on first use
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    parser.add_render_rule("fence", lambda self, tokens, index, options, env: _block(tokens[index].content))
    return parser


def _block(text: str) -> str:
    """Return a block of code with a button that copies it."""
    return Markup(
        '<div class="snip"><pre tabindex="0"><code>{}</code></pre>'
        '<button type="button" class="small scripted" data-copy="before">Copy</button></div>'
    ).format(text)


def _sections(tokens: list[Any], folder: str) -> Iterator[Section]:
    """Yield the sections of a page. Set the ids of its headings as code hosts do, and the targets of its links."""
    seen: Counter[str] = Counter()
    section = None
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            if section:
                yield section
            heading = text_of(tokens[index + 1].children)
            anchor = anchor_of(heading)
            seen[anchor] += 1
            anchor = _id(anchor + (f"-{seen[anchor] - 1}" if seen[anchor] > 1 else ""))
            token.attrSet("id", anchor)
            section = Section(heading, anchor, int(token.tag[1]))
        elif token.type in ("th_open", "td_open"):
            token.attrs.pop("style", None)  # the policy of the web interface allows no inline style
        elif token.type == "inline":
            links = list(_links(token.children, folder))
            if section and tokens[index - 1].type != "heading_open":
                section.text += text_of(token.children) + "\n"
                section.links += links
        elif token.type == "fence" and section:
            section.text += token.content
    if section:
        yield section


def anchor_of(heading: str) -> str:
    """Return the id that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _id(anchor: str) -> str:
    """Return the id of a heading on the page."""
    return f"{anchor}-section" if anchor in TAKEN else anchor


def _links(children: list[Any], folder: str) -> Iterator[tuple[str, str]]:
    """Fit the links of a paragraph to the guide; yield page and text of each link to one of its pages."""
    is_outside = False
    for index, token in enumerate(children):
        if token.type == "link_open":
            path, _, part = token.attrs["href"].partition("#")
            place = posixpath.normpath(posixpath.join(folder, path))
            if FOREIGN.match(path):
                token.attrs["rel"] = "noreferrer"
            elif path and place not in files():  # a file that only a checkout has
                token.tag, token.attrs, is_outside = "span", {}, True
            else:
                token.attrs["href"] = path.removesuffix(".md") + (f"#{_id(part)}" if part else "")
                if path.endswith(".md"):
                    yield place.removesuffix(".md"), children[index + 1].content
        elif token.type == "link_close" and is_outside:
            token.tag, is_outside = "span", False
