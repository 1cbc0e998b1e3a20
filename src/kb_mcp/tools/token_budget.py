"""Cut the answers of tools to an estimated number of tokens, as text and in structured form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate
from typing import Any, Final

from fastmcp.tools import ToolResult
from mcp_types import TextContent
from pydantic_core import to_json

from kb.api.errors import Invalid
from kb.api.search_wording import end_of_exact
from kb.client.client import JSON
from kb_mcp.tools import compact_answers
from kb_mcp.tools.invisible_characters import all_shown
from kb_mcp.tools.rendering import CUT, NOTICE
from kb_mcp.tools.shortened_results import left_out_text
from kb_mcp.tools.token_estimate import estimate_tokens

ENVELOPE_TOKENS: Final = 300
"""Reserved for the parts of an answer other than its items."""

MAX_CHARACTERS_PER_TOKEN: Final = 4
MIN_TOKENS_PER_CHUNK: Final = 30

MAX_NAME_CHARACTERS: Final = 300
"""Maximum length of a title, path, heading, tag or reason. A list of names may have twice this length."""

LEAST_TOKENS: Final = 150
"""The lowest limit of an answer: its marks and the line with the title take about 100 tokens."""

ATTEMPTS: Final = 6
"""How often an answer is made shorter, because only the whole text shows what it takes."""

LEAST_SHARE: Final = 600
"""Tokens that one document among several gets if there is room, so that a whole chunk fits."""

MARGIN: Final = 0.88
"""The part of the limit to use; the rest covers errors of the estimate."""

STEP: Final = 2
"""Number of chunks to show before and after a place, and to read on by."""


VERSION_FIELDS: Final = ("number", "at", "why", "title", "tags")
"""Fields of a version that agents get."""


def tool_result(data: JSON, text: str | None = None) -> ToolResult:
    """Return `data` as structured content, and `text` or otherwise the same JSON as text."""
    data = all_shown(data)
    text = to_json(data).decode() if text is None else text
    return ToolResult(content=[TextContent(type="text", text=text)], structured_content=data)


def json_tokens(data: object) -> float:
    return estimate_tokens(to_json(data).decode())


class AnswerLimiter:
    """Cuts answers to an estimated number of tokens, and names the calls that return the rest."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._item_tokens = max_tokens * MARGIN - ENVELOPE_TOKENS
        self.max_characters = max_tokens * MAX_CHARACTERS_PER_TOKEN
        self.max_chunks = max_tokens // MIN_TOKENS_PER_CHUNK

    def within(self, max_tokens: int, make: Callable[[AnswerLimiter], JSON], render: Callable[[JSON], str]) -> JSON:
        """Return what `make` returns with a limiter so that its text has at most `max_tokens`; 0 for no other limit."""
        if not max_tokens:
            return make(self)
        most = min(max(max_tokens, LEAST_TOKENS), self._max_tokens) * MARGIN
        limiter = copy(self)
        limiter._item_tokens = min(most, self._item_tokens)
        for _ in range(ATTEMPTS):
            data = make(limiter)
            over = estimate_tokens(render(data)) - most
            if over <= 0:
                break
            limiter._item_tokens -= over
        return data

    def chunk_pages(self, documents: Sequence[JSON]) -> list[JSON]:
        """Return the first documents, each with the chunks that fit its share; short ones leave room for others."""
        free, pages = self._item_tokens, list[JSON]()
        for number, document in enumerate(documents):
            if free <= 0 and pages:
                break
            share = copy(self)
            share._item_tokens = min(free, max(free / (len(documents) - number), LEAST_SHARE))
            page = share.chunk_page(document)
            pages.append({name: value for name, value in page.items() if name != "notice"})
            free -= json_tokens(page)
        return pages

    def count_fitting(self, items: Sequence[object], head: object = None) -> int:
        """Return how many of the first items fit along with `head`: at least one, so that agents can go on."""
        free = self._item_tokens - json_tokens(head)
        ends = accumulate(json_tokens(item) + 1 for item in items)
        return max(1, sum(1 for end in ends if end <= free))

    def fitting(self, items: Sequence[JSON], head: object = None) -> list[JSON]:
        """Return the first items that fit along with `head`; the first item may be cut."""
        shown = list(items[: self.count_fitting(items, head)])
        if shown and "text" in shown[0]:
            around = json_tokens([head, shown[0] | {"text": ""}])
            shown[0] = shown[0] | {"text": truncate_json(shown[0]["text"], self._item_tokens - around)}
        return shown

    def truncate(self, text: str) -> str:
        while (tokens := estimate_tokens(text)) > self._item_tokens:
            text = text[: int(len(text) * self._item_tokens / tokens)]
        return text

    def search_results(self, reply: JSON) -> JSON:
        """Return the results that fit."""
        results = [
            shorten_names(compact_answers.search_result(result)) | compact_answers.given(shown=result.get("shown"))
            for result in reply["results"]
        ]
        shown = self.fitting(results)
        omitted = reply["omitted"] + len(results) - len(shown)
        exact, what_follows = end_of_exact(reply["results"][: len(shown)])
        if what_follows:
            shown[exact - 1]["below"] = what_follows
        further = reply.get("further", 0)
        counts = {"omitted": omitted, "further": further, "pending": reply["pending"]}
        data = {"notice": NOTICE, "results": shown} | {name: count for name, count in counts.items() if count}
        has_excerpts = any("shown" in result for result in shown)
        left_out = left_out_text(further, reply.get("longer", 0), has_excerpts=has_excerpts)
        if rest := " ".join(filter(None, (left_out, _omitted_text(omitted)))):
            data["rest"] = rest
        return data

    def chunk_page(self, document: JSON, *, is_window: bool = False, place: range | None = None) -> JSON:
        """Return a document with the chunks that fit, and the calls that read on: in windows, or to the end.

        Args:
            document: a document with some of its chunks.
            is_window: whether the calls read on in windows.
            place: the indices of the chunks that matter most, by default all.
        """
        chunks, total = (
            [shorten_names(compact_answers.chunk(chunk)) for chunk in document["chunks"]],
            document["chunk_count"],
        )
        head = shorten_names(compact_answers.document(document))
        shown = self._around(place or range(total), chunks, head)
        first = shown[0]["index"] if shown else 0
        after = shown[-1]["index"] + 1 if shown else 0
        data = {"notice": NOTICE, **head, "chunks": shown, "chunk_count": total}
        cut = next((chunk for chunk in chunks if shown and chunk["index"] == first and chunk != shown[0]), None)
        data["next_chunk"] = first if cut else after if after < total else None
        rest = directions(document["id"], first, after, total, is_window=is_window)
        if cut:
            needed = -(-int(estimate_tokens(cut["text"]) * 1.2 + LEAST_TOKENS) // 50) * 50
            whole = f"kb_get(document_id={document['id']}, from_chunk={first}, max_tokens={needed})"
            rest = f"Chunk {first} is cut at {CUT}; {whole} shows it whole. {rest}".rstrip()
        return data | compact_answers.given(rest=rest)

    def _around(self, place: range, chunks: Sequence[JSON], head: JSON) -> list[JSON]:
        """Return the chunks at a place that fit, then by turns the chunks after and before it."""
        inside = [chunk for chunk in chunks if chunk["index"] in place]
        shown = self.fitting(inside, head)
        if len(shown) < len(inside):
            return shown
        free = self._item_tokens - json_tokens(head) - sum(json_tokens(chunk) + 1 for chunk in shown)
        after = [chunk for chunk in chunks if chunk["index"] >= place.stop]
        before = [chunk for chunk in reversed(chunks) if chunk["index"] < place.start]
        sides = [iter(after), iter(before)]
        while sides:
            side = sides.pop(0)
            chunk = next(side, None)
            if chunk and (cost := json_tokens(chunk) + 1) <= free:
                free -= cost
                shown.append(chunk)
                sides.append(side)
        return sorted(shown, key=lambda chunk: chunk["index"])

    def document_list(self, reply: JSON) -> JSON:
        documents = [shorten_names(compact_answers.listed_document(document)) for document in reply["documents"]]
        shown = self.fitting(documents)
        return {"notice": NOTICE, "documents": shown, "next_cursor": reply["next_cursor"]}

    def bin_list(self, reply: JSON) -> JSON:
        """Return deleted documents, most recently deleted first."""
        data = self.document_list(reply)
        shown = len(data["documents"])
        if shown < len(reply["documents"]):
            last = data["documents"][-1]
            data["next_cursor"] = f"{last['id']}.{last['deleted_at']}"
        next_page = f" Next page: cursor={data['next_cursor']!r}." if data["next_cursor"] else ""
        data["rest"] = f"kb_undo(document_id=…) restores one.{next_page}" if shown else "The bin is empty."
        return data

    def version_list(self, reply: JSON, reader: str) -> JSON:
        """Return the newest versions of a document, as many as fit.

        If all have one author, the answer names it once, and not if it is the reader.
        """
        authors = {compact_answers.author_label(version) for version in reply["versions"]}
        versions = [
            shorten_names({name: version[name] for name in VERSION_FIELDS if version[name] is not None})
            | (compact_answers.given(by=compact_answers.author_label(version)) if len(authors) > 1 else {})
            for version in reply["versions"]
        ]
        shown = self.fitting(versions)
        head = {name: reply[name] for name in ("document_id", "deleted_at") if reply[name] is not None}
        head |= compact_answers.given(by="".join(authors - {reader})) if len(authors) == 1 else {}
        data = {"notice": NOTICE, **head, "versions": shown}
        if len(shown) < len(versions) or reply["next_cursor"]:
            data["rest"] = "Older versions exist. To show or revert to one, pass its number."
        return data

    def version(self, reply: JSON, start: int = 0) -> JSON:
        """Return a version with as much of its text as fits, from `start` on, and the call that reads on.

        Raises:
            Invalid: the text ends before `start`.
        """
        total = len(reply["text"])
        if start and start >= total:
            raise Invalid(f"start: version {reply['number']} has only {total} characters.")
        text = reply["text"][start:]
        [shown] = self.fitting([shorten_names(reply | {"text": text})])
        data = {"notice": NOTICE, **shown}
        if shown["text"] != text:
            data["text"] = shown["text"].removesuffix(CUT)
            end = start + len(data["text"])
            call = f"kb_history(document_id={reply['document_id']}, version={reply['number']}, start={end})"
            data["rest"] = f"Characters {start} to {end} of {total}. Read on with {call}."
        return data


def _omitted_text(count: int) -> str:
    how = "Narrow the search with tags or doc_type, or use kb_list or kb_get."
    return f"{count} more did not fit. {how}" if count else ""


def check_from_chunk(document: JSON, from_chunk: int) -> None:
    """Refuse to read on after the end of a document.

    Raises:
        Invalid: the document has fewer chunks.
    """
    number, count = document["id"], document["chunk_count"]
    if from_chunk and from_chunk >= count:
        raise Invalid(
            f"from_chunk: document {number} has chunks 0 to {count - 1}. To read around a search result, pass its"
            f" chunk_id instead: kb_get(document_id={number}, chunk_id={from_chunk})."
        )


def directions(document_id: int, first: int, after: int, total: int, *, is_window: bool) -> str:
    """Return the calls that read a document before chunk `first` and from chunk `after` on."""
    ways = []
    if first:
        ways.append(f"Before: {_window_call(document_id, max(0, first - 1 - 2 * STEP), first - 1)}.")
    if after < total and is_window:
        ways.append(f"After: {_window_call(document_id, after, min(after + 2 * STEP, total - 1))}.")
    elif after < total:
        ways.append(f"After (chunks {after} to {total - 1}): kb_get(document_id={document_id}, from_chunk={after}).")
    return " ".join(ways)


def _window_call(document_id: int, first: int, last: int) -> str:
    middle = (first + last) // 2
    return f"kb_get(document_id={document_id}, from_chunk={middle}, around={last - middle})"


def with_notice(data: JSON) -> JSON:
    """Return an answer that contains names from documents, with the notice first."""
    return {"notice": NOTICE, **shorten_names(data)}


def jobs(reply: JSON) -> JSON:
    return with_notice(
        {"jobs": [compact_answers.job(job) for job in reply["jobs"]], "next_cursor": reply["next_cursor"]}
    )


def shorten_names(value: Any, room: int = MAX_NAME_CHARACTERS) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON with all values cut except texts: a file can have any number of names of any length."""
    if isinstance(value, str):
        return value if len(value) <= room else f"{value[:room]}…"
    if isinstance(value, dict):
        return {name: item if name == "text" else shorten_names(item) for name, item in value.items()}
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return [shorten_names(item) for item in value] if isinstance(value, list) else value
    names = [shorten_names(item) for item in value]
    # Tags such as `project:kb` are more important than others.
    first = sorted(range(len(names)), key=lambda index: ":" not in names[index])
    ends = accumulate(len(names[index]) for index in first)
    whole = {index for index, end in zip(first, ends, strict=True) if end <= 2 * room}
    shown = [name for index, name in enumerate(names) if index in whole]
    return shown if len(shown) == len(names) else [*shown, "…"]


def truncate_json(text: str, tokens: float) -> str:
    """Return as much of the text as fits into `tokens` in JSON, with a mark if it was cut."""
    shown = text
    while shown and (size := json_tokens(shown)) > tokens:
        shown = shown[: int(len(shown) * max(tokens, 0) / size)]
    return shown if len(shown) == len(text) else f"{shown}{CUT}"
