"""Render Markdown as Obsidian and GitHub show it.

All of it is untrusted. HTML in it stays text, except for a few tags without attributes. Links lead to the web or to
documents in kb, and pictures come only from documents in kb.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from kb.markdown.front_matter import BLOCK
from kb.markdown.signs import BOXES
from kb_web.formulas import mathml
from kb_web.markdown_links import WEB, Surroundings, anchor_of, is_harmless
from kb_web.markdown_syntax import BLOCK_ID, SIZE, add_syntax
from kb_web.marking import mark

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.utils import EnvType

    Shown = Callable[[Token, EnvType], str]
    """Returns a token as HTML."""

OWN_FIELDS: Final = {"title", "tags", "tag"}
"""Fields of the front matter that the page shows elsewhere."""

LONGEST_MATTER: Final = 20_000
MOST_PIXELS: Final = 4000

_FIELD: Final = re.compile(r"([^\W\d][\w .-]{0,60}?)[ \t]*(?:=|:(?=[ \t]|$))[ \t]*(.*)$")


def rendered(text: str, about: Surroundings) -> Markup:
    """Return a whole text, which may begin with front matter, as HTML."""
    matter, text = without_matter(text)
    env = {"about": about, "docId": about.part or None}
    return fields(matter, about) + Markup(parser().render(text, env))  # noqa: S704 - the parser escapes the text


def shown(tokens: Sequence[Token], env: Mapping[str, Any]) -> Markup:
    """Return the blocks of a parsed text as HTML."""
    made = parser()
    return Markup(made.renderer.render(tokens, made.options, dict(env)))  # noqa: S704 - the parser escapes the text


def without_matter(text: str) -> tuple[str, str]:
    """Return the front matter of a text, and the text with empty lines in its place."""
    text = text.replace("\r\n", "\n")
    block = BLOCK.match(text)
    if not block:
        return "", text
    return block["matter"], "\n" * block[0].count("\n") + text[block.end() :]


def fields(matter: str, about: Surroundings, words: Set[str] = frozenset()) -> Markup:
    """Return front matter as a list of its fields, without the fields that the page shows elsewhere."""
    rows = Markup("").join(
        Markup("<dt>{}</dt><dd>{}</dd>").format(name, _value(value, about, words)) for name, value in _entries(matter)
    )
    return Markup('<dl class="facts head">{}</dl>').format(rows) if rows else Markup("")


def _entries(matter: str) -> Iterator[tuple[str, str]]:
    entries: list[tuple[str, list[str]]] = []
    for line in matter[:LONGEST_MATTER].splitlines():
        if line.lstrip().startswith("#"):
            continue
        if not line[:1].isspace() and (named := _FIELD.match(line)):
            entries.append((named[1], [named[2].rstrip("|>-") if named[2][:1] in "|>" else named[2]]))
        elif entries:
            entries[-1][1].append(line.strip().removeprefix("- "))
    for name, lines in entries:
        value = ", ".join(filter(None, (line.strip().strip("\"'") for line in lines)))
        is_list = value.startswith("[") and value.endswith("]") and not value.startswith("[[")
        value = value[1:-1] if is_list else value
        if value and name.lower() not in OWN_FIELDS:
            yield name, value


def _value(value: str, about: Surroundings, words: Set[str]) -> Markup:
    if "[[" in value or "://" in value:
        env = {"about": about, "words": words}
        return Markup(parser().renderInline(value, env))  # noqa: S704 - the parser escapes the text
    return mark(value, words)


@cache
def parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.use(footnote_plugin)
    made.use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
    add_syntax(made)
    normalize = made.normalizeLink
    made.normalizeLink = lambda url: normalize(url) if WEB.match(url) else url  # type: ignore[method-assign]
    made.validateLink = is_harmless  # type: ignore[method-assign] # the library's way to configure it
    for name, shown in _SHOWN.items():
        made.add_render_rule(name, _rule(shown))
    return made


def _rule(shown: Shown) -> Callable[..., str]:
    return lambda _, tokens, index, options, env: str(shown(tokens[index], env))


def _marked(text: str, env: EnvType) -> Markup:
    """Return a text with the words of the search marked."""
    return mark(text, env.get("words", frozenset()))


def _wiki(token: Token, env: EnvType) -> str:
    """Return a picture, or a link to a document."""
    about, target, label = env["about"], token.meta["target"], _marked(token.content, env)
    if token.meta["is_embed"] and (source := about.picture(target)):
        return _picture(source, about.address(target), token)
    if not token.meta["is_linked"] and WEB.match(target):
        return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(target, label)
    if not token.meta["is_linked"] and (address := about.address(target)):
        return Markup('<a href="{}">{}</a>').format(address, label)
    if about.is_broken(target):
        if not token.meta["is_linked"] and (address := about.new_note(target)):
            return Markup('<a class="missing" href="{}" title="Write this note">{}</a>').format(address, label)
        return Markup('<span class="missing" title="kb has no such document">{}</span>').format(label)
    return Markup('<span class="wiki">{}</span>').format(label)


def _picture(source: str, address: str, token: Token) -> Markup:
    """Return a picture, which leads to its document unless it is inside a link."""
    size = SIZE.fullmatch(token.meta["alias"].rpartition("|")[2])
    alt = token.meta["alt"] or token.content.rpartition("/")[2]
    width = Markup(' width="{}"').format(min(int(size[1]), MOST_PIXELS)) if size and int(size[1]) else ""
    picture = Markup('<img src="{}" alt="{}"{} loading="lazy">').format(source, alt, width)
    return picture if token.meta["is_linked"] else Markup('<a href="{}">{}</a>').format(address, picture)


def _embed(token: Token, env: EnvType) -> str:
    """Return an embedded document, or a part of it, below its title."""
    about: Surroundings = env["about"]
    target = token.meta["target"]
    to = about.destination(target)
    assert to  # noqa: S101 - only these become embeds
    text, own = about.embedded[to.document_id]
    part = f"{to.document_id}-{token.meta['number']}"
    own = replace(own, part=part, level=token.meta["level"], embedded={})
    inner = rendered(_part(text, target.partition("#")[2]), own)
    title = Markup('<p class="of"><a href="{}">{}</a></p>').format(about.address(target), to.title or target)
    return Markup('<div class="embed">{}{}</div>\n').format(title, inner)


def _part(text: str, place: str) -> str:
    """Return the section below a heading, or a block with an id; the whole text if the text has no such part."""
    anchor, lines = anchor_of(place), text.split("\n")
    tokens = parser().parse(text, {"about": Surroundings()}) if place else []
    spans = [token.map for token in tokens if token.map and (not token.level or token.type == "list_item_open")]
    if anchor.startswith("b-"):
        number = next((at for at, line in enumerate(lines) if _has_id(line, anchor)), len(lines))
        around = [span for span in spans if span[0] <= number < span[1]]
        begin, end = min(around, key=lambda span: span[1] - span[0], default=(0, len(lines)))
        if not BLOCK_ID.sub("", lines[begin]).strip() and begin > 0:  # the id of the block above
            begin = max((span[0] for span in spans if span[1] <= begin), default=begin)
        return dedent("\n".join(lines[begin:end]))
    headings = [token for token in tokens if token.type == "heading_open" and token.map and not token.level]
    for at, token in enumerate(headings):
        if token.attrs.get("id") == anchor and token.map:
            after = next((each.map[0] for each in headings[at + 1 :] if each.map and each.tag <= token.tag), len(lines))
            footnotes = [line for line in lines[after:] if line.startswith("[^")]
            return "\n".join([*lines[token.map[0] : after], "", *footnotes])
    return text


def _has_id(line: str, anchor: str) -> bool:
    found = BLOCK_ID.search(line)
    return found is not None and f"b-{found[1]}" == anchor


def _comment(token: Token, env: EnvType) -> str:
    """Return a comment if a search found it, or nothing."""
    text = _marked(token.content, env)
    return Markup('<{0} class="faint comment">{1}</{0}>').format(token.tag, text) if "<mark>" in text else ""


def _tag(token: Token, env: EnvType) -> str:
    address = f"{env['about'].root}documents?{urlencode({'tag': token.meta['tag']})}"
    return Markup('<a class="hash" href="{}">{}</a>').format(address, _marked(token.content, env))


def _task(token: Token, _: EnvType) -> str:
    """Return the box of a task, which a click ticks."""
    sign, line = token.meta["sign"], token.meta["line"]
    return Markup(
        '<button form="tick" name="line" value="{0}" id="task-{0}" role="checkbox" aria-checked="{1}" aria-label="{2}">'
        "{3}</button> "
    ).format(line, str(sign in "xX").lower(), token.meta["about"][:100], BOXES[sign].strip())


def _math(token: Token, env: EnvType) -> str:
    is_block, shown = token.type == "math_block", _marked(token.content.strip(), env)
    if "<mark>" not in shown and (drawn := mathml(token.content.strip(), is_block=is_block)):
        return drawn
    if is_block:
        return Markup('<pre class="math"><code>{}</code></pre>\n').format(shown)
    return Markup('<code class="math">{}</code>').format(shown)


def _callout(token: Token, env: EnvType) -> str:
    title, look = shown([token.copy(type="inline", children=token.meta["title"])], env), token.meta["look"]
    if not token.meta["fold"]:
        return Markup('<div class="callout look-{}"><p class="of">{}</p>\n').format(look, title)
    is_open = Markup(" open") if token.meta["fold"] == "+" or "<mark>" in _marked(token.meta["text"], env) else ""
    return Markup('<details class="callout look-{}"{}><summary>{}</summary>\n').format(look, is_open, title)


_SHOWN: Final[Mapping[str, Shown]] = {
    "text": lambda token, env: _marked(token.content, env),
    "wiki": _wiki,
    "embed": _embed,
    "comment": _comment,
    "tag": _tag,
    "task": _task,
    "math_inline": _math,
    "math_inline_double": _math,
    "math_block": _math,
    "callout_open": _callout,
    "callout_close": lambda token, _: "</details>\n" if token.meta["fold"] else "</div>\n",
    "anchor": lambda token, _: Markup('<span id="{}"></span>').format(token.attrs["id"]),
    "table_open": lambda *_: '<div class="wide" tabindex="0"><table>',
    "table_close": lambda *_: "</table></div>",
}
