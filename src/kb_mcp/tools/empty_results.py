"""Filters that leave nothing: what was meant, and what there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from kb.api.doc_types import DOC_TYPES
from kb.client.client import JSON, EngineClient
from kb_mcp.tools.path_hints import documents_called, nearest_paths, same_path
from kb_mcp.tools.rendering import named, quoted

NEEDED_TAGS: Final = ("tags", "tag")
OPTIONAL_TAGS: Final = ("tag_any", "tag_not")
TAG_FILTERS: Final = (*NEEDED_TAGS, *OPTIONAL_TAGS)
MOST_NAMED: Final = 3
SUFFIX_TYPES: Final = {
    "word": "docx",
    "doc": "docx",
    "excel": "xlsx",
    "powerpoint": "pptx",
    "md": "markdown",
    "txt": "text",
}
"""Types as people call them."""


async def retried(
    engine: EngineClient, reply: JSON, ask: Callable[[JSON], Awaitable[JSON]], filters: JSON
) -> tuple[JSON, list[str]]:
    """Ask again with the tags, type and folder that were meant, where they differ from those given in letters alone.

    Where something was found, only tags can be wrong: those of which one is enough, and those that must not be. Return
    the reply, what was changed, and which of these tags there are not.
    """
    if not filters or (_found(reply) and not filters.keys() & OPTIONAL_TAGS):
        return reply, []
    counts = await _counts(engine)
    fixed, said = _with_tags_meant(filters, counts)
    if not _found(reply):
        if (given := filters.get("doc_type")) and (meant := same_type(given)) != given:
            fixed["doc_type"] = meant
            said.append(f"There is no type {quoted(given, 60)}: {quoted(meant, 60)} was taken.")
        if (prefix := filters.get("source_prefix")) and (meant := await same_path(engine, prefix)) != prefix:
            fixed["source_prefix"] = meant
            said.append(f"No path begins with {quoted(prefix, 60)}: {quoted(meant, 60)} was taken.")
    if said:
        reply = await ask(fixed)
    return reply, [*said, *(_unknown_tags(fixed, OPTIONAL_TAGS, counts) if _found(reply) else ())]


def _found(reply: JSON) -> bool:
    return bool(reply.get("results") or reply.get("documents"))


async def _counts(engine: EngineClient) -> dict[str, int]:
    """Return how many documents have each tag."""
    return {label["tag"]: label["branch"] for label in (await engine.tags())["tags"]}


def _with_tags_meant(filters: JSON, tags: dict[str, int]) -> tuple[JSON, list[str]]:
    """Return the filters with the tags that were meant, and what was changed."""
    fixed, said = dict(filters), list[str]()
    for name in (name for name in TAG_FILTERS if name in filters):
        fixed[name] = [tag if tag in tags else same_tag(tag, tags) for tag in filters[name]]
        pairs = zip(filters[name], fixed[name], strict=True)
        said += [f"There is no tag {quoted(a, 60)}: {quoted(b, 60)} was taken." for a, b in pairs if a != b]
    return fixed, said


def _unknown_tags(filters: JSON, names: Iterable[str], counts: dict[str, int]) -> list[str]:
    return [
        f"There is no tag {quoted(tag, 60)}{_nearest(tag, counts)}."
        for name in names
        for tag in filters.get(name, ())
        if tag not in counts
    ]


async def nothing_found(engine: EngineClient, filters: JSON) -> str:
    """Return one line: which filter names nothing, and the nearest that do; "" if each names something.

    Raises:
        NotFound: there is no such document to search in.
    """
    if "document_id" in filters:
        await engine.document(filters["document_id"], chunks=1)
    said = _unknown_tags(filters, (*NEEDED_TAGS, "tag_any"), await _counts(engine))
    if doc_type := filters.get("doc_type"):
        types = (await engine.status())["documents"]
        if doc_type not in types:
            listed = ", ".join(f"{name} ({count})" for name, count in types.items())
            said.append(f"There is no document of type {quoted(doc_type, 60)}; there are {listed or 'none at all'}.")
    if lang := filters.get("lang"):
        languages = (await engine.status())["languages"]
        if lang.lower() not in languages:
            listed = ", ".join(f"{name} ({count})" for name, count in languages.items())
            said.append(
                f"No document is in the language {quoted(lang, 60)}; there are {listed or 'none that are known'}."
            )
    for name in ("source_path", "source_prefix"):
        if name in filters:
            said += await _path_hint(engine, name, filters[name])
    after, before = (filters.get(name) for name in ("after", "before"))
    if after and before and datetime.fromisoformat(after) >= datetime.fromisoformat(before):
        said.append("before: it is not later than after, and leaves its own day out.")
    if said or not filters:
        return " ".join(said)
    return "Nothing was found under these filters: leave out some of them."


def same_tag(tag: str, tags: Iterable[str]) -> str:
    """Return the tag that differs only in case, # and commas; the same one if there is none."""
    return next((other for other in tags if _folded(other) == _folded(tag)), tag)


def same_type(doc_type: str) -> str:
    name = doc_type.casefold().strip(" .")
    name = SUFFIX_TYPES.get(name, name)
    return name if name in DOC_TYPES else doc_type


def _folded(tag: str) -> str:
    return tag.casefold().strip("# ,\t\n")


def _nearest(tag: str, counts: dict[str, int]) -> str:
    folded = {_folded(name): name for name in counts}
    near = [folded[key] for key in get_close_matches(_folded(tag)[:100], folded, MOST_NAMED, 0.6)]
    return ": did you mean " + ", ".join(f"{quoted(name, 60)} ({counts[name]})" for name in near) if near else ""


async def _path_hint(engine: EngineClient, name: str, path: str) -> list[str]:
    below = await engine.documents(source_prefix=path, limit=1)
    if name == "source_path" and below["documents"]:
        return [f"No document has exactly that path; some begin with it: kb_list(source_prefix={quoted(path)})."]
    if below["documents"]:
        return []
    head = "No document has exactly that path." if name == "source_path" else f"No path begins with {quoted(path)}."
    if called := await documents_called(engine, path):
        return [f"{head} Perhaps you mean one of these: {named(called)}."]
    if near := await nearest_paths(engine, path):
        return [f"No path begins with {quoted(path)}: did you mean {', '.join(map(quoted, near))}?"]
    return [f"No path begins with {quoted(path)}, and no file is called so: ask kb_search for words of its text."]
