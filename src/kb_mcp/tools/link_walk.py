"""The documents around a document: those that it links to and those that link to it, one or two links away."""

from contextlib import suppress
from typing import Final

from kb.api.errors import NotFound
from kb.client.client import JSON, EngineClient
from kb_mcp.tools import compact_answers
from kb_mcp.tools.rendering import NOTICE
from kb_mcp.tools.token_budget import AnswerLimiter, shorten_names

MOST_STEPS: Final = 2
MOST: Final = 40
"""Maximum number of documents in a walk."""

WALK_TOKENS: Final = 500
"""The limit of a walk without another one."""

LONGEST_LINE: Final = 120


async def walk(engine: EngineClient, start: int, steps: int) -> list[JSON]:
    """Return the documents at most so many links away, nearest first, each with the link that leads to it."""
    found, begun = {start: JSON()}, 0
    for _ in range(steps):
        edge, begun = list(found)[begun:], len(found)
        for number in edge:
            if len(found) <= MOST:
                for way, other in await _linked(engine, number):
                    found.setdefault(other["document_id"], {"of": number, "way": way, "title": other["title"]})
    around = list(found.items())[1 : MOST + 1]
    return [shorten_names({"id": number, **link, "text": await _first_line(engine, number)}) for number, link in around]


def walk_page(limiter: AnswerLimiter, document: JSON, around: list[JSON]) -> JSON:
    """Return a document without its text, and the documents around it that fit."""
    head = {"id": document["id"], "title": document["title"], "doc_type": document["doc_type"]}
    shown = around[: limiter.count_fitting(around, head)]
    left = len(around) - len(shown)
    rest = "It has no links, and no document links to it." if not around else ""
    rest = f"{left} more did not fit: raise max_tokens, or use links=1." if left else rest
    return {"notice": NOTICE, **shorten_names(head), "around": shown, **compact_answers.given(rest=rest)}


async def _linked(engine: EngineClient, number: int) -> list[tuple[str, JSON]]:
    """Return the documents that one links to, and those that link to it; none if it was just deleted."""
    with suppress(NotFound):
        reply = await engine.links(number)
        ways = (("links to", reply["links"]), ("is linked from", reply["linked_from"]))
        return [(way, other) for way, others in ways for other in others if other["document_id"]]
    return []


async def _first_line(engine: EngineClient, number: int) -> str:
    """Return the first line of a document after its title; empty if it was just deleted."""
    with suppress(NotFound):
        document = await engine.document(number, chunks=1)
        lines = "".join(map(compact_answers.passage_text, document["chunks"])).splitlines()
        title = document["title"].removesuffix("…")
        texts = [line for line in filter(str.strip, lines) if line.strip(compact_answers.MARKS) != title]
        return next(iter(texts), "").strip()[:LONGEST_LINE]
    return ""
