"""The syntax that Obsidian and GitHub add to Markdown: links in brackets, embeds, callouts, tasks, comments, tags.

The rules work on the tokens of markdown-it-py. Its `state.env["about"]` is a `Surroundings`, and `state.env["line"]` is
the line of the note that the text, whose lines are `state.env["lines"]`, begins at, if the reader can tick its tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from kb.markdown.blocks import BREAKS, text_of
from kb.markdown.links import BEHIND, WIKI, wiki_target
from kb.markdown.signs import BOXES, ticked
from kb.markdown.tags import tag_at
from kb_web.markdown_links import WEB, Surroundings, anchor_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

CALLOUTS: Final = {
    **dict.fromkeys(("tip", "hint", "important", "success", "check", "done"), "tip"),
    **dict.fromkeys(("warning", "caution", "attention", "question", "help", "faq"), "care"),
    **dict.fromkeys(("failure", "fail", "missing", "danger", "error", "bug"), "alert"),
    **dict.fromkeys(("quote", "cite", "example", "abstract", "summary", "tldr"), "calm"),
}
"""The looks of a callout by its type; other types look like a note."""


SHORT_LINE: Final = 60
LONGEST_COMMENT: Final = 20_000

SIZE: Final = re.compile(r"(\d{1,4})(?:x(\d{1,4}))?")
BLOCK_ID: Final = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]{1,100})\s*$")
_MARKED: Final = re.compile(r"==(?=[^\s=])(?P<inner>[^\n]{1,1000}?)(?<=[^\s=])==(?!=)")
_COMMENTS: Final = {"%%": "%%", "<!--": "-->"}
_HTML: Final = re.compile(
    r"<(?P<tag>b|del|em|i|ins|kbd|mark|s|small|strong|sub|sup|u)>(?P<inner>[^\n]{1,1000}?)</(?P=tag)>", re.IGNORECASE
)
_BREAK: Final = re.compile(r"<br[ ]?/?>", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"://[^\W_][^\s<>\"`|\[\]]{0,2000}")
_IMAGE: Final = re.compile(r"!\[[^\[\]\n]{0,500}\]\((?:<([^<>\n]{1,1000})>|([^\s()<>]{1,1000}))")
_CALLOUT: Final = re.compile(r"\[!([\w-]{1,40})(?:\|[^\]\n]{0,100})?\]([+-]?)[ \t]*")
_TASK: Final = re.compile(r"\[([ xX/-])\] ")


def add_syntax(parser: MarkdownIt) -> None:
    ending = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "comment", _comment_block, {"alt": ending})
    for rule in (_wiki, _look, _comment, _break, _tag, _address):
        parser.inline.ruler.before("link", rule.__name__, rule)
    parser.core.ruler.push("obsidian", _finish)


def embeds_in(text: str) -> list[str]:
    """Return the targets that a text embeds, as written."""
    named = [wiki_target(match["inner"]) for match in WIKI.finditer(text) if match["embed"]]
    return list(dict.fromkeys([*named, *(match[1] or match[2] for match in _IMAGE.finditer(text))]))


# Rules for blocks and for the text inside them.


def _comment_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    begin = state.bMarks[start] + state.tShift[start]
    stop = 0 if state.is_code_block(start) else _end_of_comment(state.src, begin, len(state.src))
    line = next((line for line in range(start, end) if state.eMarks[line] >= stop), end) if stop else end
    if line == end or state.src[stop : state.eMarks[line]].strip():
        return False
    if not silent:
        token = state.push("comment", "div", 0)
        token.content, token.map, token.block = state.src[begin:stop], [start, line + 1], True
        state.line = line + 1
    return True


def _end_of_comment(source: str, begin: int, end: int) -> int:
    """Return the end of the comment that begins at a position; 0 if none does."""
    opening = next((each for each in _COMMENTS if source.startswith(each, begin)), None)
    if not opening:
        return 0
    closing, first = _COMMENTS[opening], begin + len(opening)
    at = source.find(closing, first, min(end, first + LONGEST_COMMENT))
    return at + len(closing) if at >= 0 else 0


def _matched(state: StateInline, pattern: re.Pattern[str]) -> re.Match[str] | None:
    return pattern.match(state.src, state.pos, state.posMax)


def _wiki(state: StateInline, silent: bool) -> bool:
    """A link or an embed in double brackets."""
    if state.src[state.pos] not in "![" or not (found := _matched(state, WIKI)):
        return False
    if not silent:
        target, alias = wiki_target(found["inner"]), found["inner"].partition("|")[2].strip()
        token = state.push("wiki", "a", 0)
        named = target.removeprefix("#").replace("#page=", ", page ").replace("#", " > ")
        token.content = _without_size(alias) or named
        token.meta = _reference(target, alias=alias, is_embed=bool(found["embed"]), is_linked=state.linkLevel > 0)
    state.pos = found.end()
    return True


def _without_size(alias: str) -> str:
    """Return the text for a picture without its size, as in `door|300`."""
    text, _, size = alias.rpartition("|")
    return text if SIZE.fullmatch(size) else alias


def _reference(
    target: str, *, alias: str = "", alt: str = "", is_embed: bool, is_linked: bool
) -> dict[str, str | bool]:
    """Return the parts of a link in brackets or of a picture; `is_linked` if it is inside another link."""
    return {"target": target, "alias": alias, "alt": alt, "is_embed": is_embed, "is_linked": is_linked}


def _look(state: StateInline, silent: bool) -> bool:
    """Text between two pairs of equals signs, or between two tags without attributes that only change its look."""
    pattern = {"=": _MARKED, "<": _HTML}.get(state.src[state.pos])
    if not pattern or not (found := _matched(state, pattern)):
        return False
    if not silent:
        most = state.posMax
        state.pos, state.posMax = found.span("inner")
        opening = state.push("look_open", found.groupdict().get("tag", "mark").lower(), 1)
        if opening.tag == "mark":  # unlike the words that a search found
            opening.attrSet("class", "pen")
        state.md.inline.tokenize(state)
        state.push("look_close", opening.tag, -1)
        state.posMax = most
    state.pos = found.end()
    return True


def _comment(state: StateInline, silent: bool) -> bool:
    end = _end_of_comment(state.src, state.pos, state.posMax)
    if not end:
        return False
    if not silent:
        state.push("comment", "span", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def _break(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<" or not (found := _matched(state, _BREAK)):
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "#" or state.linkLevel:
        return False
    name = tag_at(state.src, state.pos, state.posMax)
    if name.strip("/").lower() not in state.env["about"].tags:
        return False
    if not silent:
        token = state.push("tag", "a", 0)
        token.content, token.meta = f"#{name}", {"tag": name.strip("/").lower()}
    state.pos += 1 + len(name)
    return True


def _address(state: StateInline, silent: bool) -> bool:
    """A web address without brackets."""
    scheme = next((each for each in ("https", "http") if state.pending.endswith(each)), None)
    if silent or state.linkLevel or not scheme or not (found := _matched(state, _ADDRESS)):
        return False
    before = state.pending[: -len(scheme)]
    if before[-1:].isalnum():
        return False
    rest = found[0].rstrip(f"{BEHIND}'")
    rest = rest if rest.count(")") <= rest.count("(") else rest.rstrip(")")
    state.pending = before
    state.push("link_open", "a", 1).attrSet("href", state.md.normalizeLink(scheme + rest))
    state.push("text", "", 0).content = scheme + rest
    state.push("link_close", "a", -1)
    state.pos += len(rest)
    return True


# Rules that need all blocks.


def _finish(state: StateCore) -> None:
    about: Surroundings = state.env["about"]
    seen: Counter[str] = Counter()
    for index, token in enumerate(state.tokens):
        if token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            if align in ("right", "center"):
                token.attrSet("class", align)
        elif token.type == "blockquote_open":
            _make_callout(state.tokens, index)
        elif token.type == "inline" and token.children:
            before = state.tokens[index - 1]
            token.children = list(_referring(token.children, about))
            _keep_lines(token)
            _set_block_id(token.children, before, about)
            if before.type == "heading_open":
                anchor = anchor_of(text_of(token.children).replace("#", ""))
                seen[anchor] += 1
                if not about.part:
                    before.attrSet("id", anchor + (f"-{seen[anchor]}" if seen[anchor] > 1 else ""))
            elif index > 1 and state.tokens[index - 2].type == "list_item_open":
                _make_task(state.tokens[index - 2], token.children, state.env)
    _hide_title(state.tokens, about.title)
    _set_levels(state.tokens, about.level)
    state.tokens = list(_with_embeds(state.tokens, about))


def _hide_title(tokens: Sequence[Token], title: str) -> None:
    """Hide a first heading that repeats the title of the page."""
    at = next((at for at, token in enumerate(tokens) if token.type != "comment"), None)
    if at is not None and tokens[at].type == "heading_open":
        heading = text_of(tokens[at + 1].children or ())
        if title and " ".join(heading.split()).casefold() == " ".join(title.split()).casefold():
            tokens[at].attrSet("class", "again")


def _set_levels(tokens: Sequence[Token], highest: int) -> None:
    """Give headings and embeds the levels that they have on the page."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    shown = [int(token.tag[1]) for token in headings[2 * (bool(headings) and _is_again(headings[0])) :]]
    up = highest - min(shown, default=1)
    for token in headings:
        token.tag = f"h{min(6, max(highest, int(token.tag[1]) + up))}"


def _is_again(heading: Token) -> bool:
    return heading.attrs.get("class") == "again"


def _make_task(item: Token, children: list[Token], env: MutableMapping[str, Any]) -> None:
    first = children[0] if children else None
    task = _TASK.match(first.content) if first and first.type == "text" else None
    if not first or not task:
        return
    first.content = first.content[task.end() :]
    item.attrSet("class", "task done" if task[1] in "xX-" else "task")
    line = env.get("line")
    if line is None or not item.map or ticked(env["lines"][item.map[0]]) is None:
        first.content = BOXES[task[1]] + first.content
    else:
        meta = {"sign": task[1], "line": line + item.map[0], "about": text_of(children)}
        children.insert(0, _made("task", first, **meta))


def _keep_lines(inline: Token) -> None:
    """Keep the line breaks of a block of short lines, such as an address."""
    if max(map(len, inline.content.split("\n"))) <= SHORT_LINE:
        for child in inline.children or ():
            if child.type == "softbreak":
                child.type, child.tag = "hardbreak", "br"


def _set_block_id(children: list[Token], before: Token, about: Surroundings) -> None:
    """Replace the id at the end of a block by an anchor."""
    last = children[-1] if children else None
    if last is None or last.type != "text" or not (found := BLOCK_ID.search(last.content)):
        return
    last.content = last.content[: found.start()]
    if len(children) > 1 and not last.content and children[-2].type in BREAKS:
        del children[-2]
    if len(children) == 1 and not last.content and before.type == "paragraph_open":
        before.attrSet("class", "bare")
    if not about.part:
        anchor = _made("anchor", last)
        anchor.attrSet("id", f"b-{found[1]}")
        children.append(anchor)


def _made(kind: str, like: Token, **meta: object) -> Token:
    """Return another token at the level and the lines of one."""
    token: Token = like.copy(type=kind, tag="", nesting=0, content="", children=None, attrs={}, meta=meta, markup="")
    return token


def _make_callout(tokens: list[Token], at: int) -> None:
    """Turn a quote that begins with `[!type]` into a callout."""
    if [token.type for token in tokens[at + 1 : at + 3]] != ["paragraph_open", "inline"]:
        return
    inline = tokens[at + 2]
    children = inline.children or []
    kind = _CALLOUT.match(children[0].content) if children and children[0].type == "text" else None
    if not kind:
        return
    children[0].content = children[0].content[kind.end() :]
    end = next((index for index, child in enumerate(children) if child.type in BREAKS), None)
    title, rest = (children, []) if end is None else (children[:end], children[end + 1 :])
    name, fold = kind[1].lower(), kind[2]
    if not text_of(title).strip():
        title[0].content = name.replace("-", " ").capitalize()
    meta: dict[str, Any] = {"look": CALLOUTS.get(name, "note"), "fold": fold, "title": title}
    level, last = tokens[at].level, range(at, len(tokens))
    closing = next(each for each in last if (tokens[each].type, tokens[each].level) == ("blockquote_close", level))
    close, meta["text"] = tokens[closing], "\n".join(token.content for token in tokens[at + 2 : closing])
    tokens[at].type, tokens[at].meta = "callout_open", meta
    close.type, close.meta = "callout_close", meta
    inline.children = rest
    if not rest:
        tokens[at + 1].hidden = tokens[at + 3].hidden = True
        inline.content = ""


def _referring(children: Sequence[Token], about: Surroundings) -> Iterator[Token]:
    """Yield the text of a block with links to documents and pictures in kb."""
    closing = list[str]()
    for child in children:
        if child.type == "link_open":
            closing.append(_lead(child, about))
        elif child.type == "link_close":
            child.tag = closing.pop() if closing else child.tag
        elif child.type == "image":
            target, alt = str(child.attrs.get("src", "")), text_of(child.children or ())
            picture = _made("wiki", child, **_reference(target, alt=alt, is_embed=True, is_linked=bool(closing)))
            name, _, size = alt.rpartition("|")
            if SIZE.fullmatch(size):
                picture.meta |= {"alias": size, "alt": name}
            picture.content = picture.meta["alt"] or unquote(target).rpartition("/")[2]
            child = picture
        yield child


def _lead(link: Token, about: Surroundings) -> str:
    """Let a link lead to the web, to a document or, as a span, nowhere; return its tag."""
    target = str(link.attrs.pop("href", ""))
    address = target if WEB.match(target) else about.address(target)
    if address is None:
        link.tag, link.attrs = "span", {"class": "wiki"}
        if about.is_broken(target):
            link.attrs = {"class": "missing", "title": "kb has no such document"}
    else:
        link.attrSet("href", address)
        if WEB.match(target):
            link.attrSet("rel", "noopener noreferrer nofollow")
    return link.tag


def _with_embeds(tokens: Sequence[Token], about: Surroundings) -> Iterator[Token]:
    """Yield tokens with paragraphs of nothing but embedded documents replaced by these documents."""
    skipped, level = 0, about.level
    for index, token in enumerate(tokens):
        if skipped:
            skipped -= 1
            continue
        if token.type == "heading_open" and not token.level and not _is_again(token):
            level = min(6, int(token.tag[1]) + 1)
        children = (tokens[index + 1].children or []) if token.type == "paragraph_open" else []
        shown = [about.destination(child.meta["target"]) for child in children if child.type == "wiki"]
        is_whole = all(child.type in BREAKS or _is_embedded(child, about) for child in children)
        if not shown or not is_whole:
            yield token
            continue
        skipped = 2
        for child in children:
            if child.type == "wiki":
                yield _made("embed", token, target=child.meta["target"], number=index, level=level)


def _is_embedded(child: Token, about: Surroundings) -> bool:
    if child.type != "wiki" or not child.meta["is_embed"]:
        return False
    to = about.destination(child.meta["target"])
    return to is not None and to.document_id in about.embedded and about.picture(child.meta["target"]) is None
