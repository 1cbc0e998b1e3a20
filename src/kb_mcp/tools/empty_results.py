"""Answers to filters that match nothing: corrections, and the existing values."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from kb.api.file_types import types_called
from kb.client.client import JSON, EngineClient
from kb_mcp.tools.path_hints import documents_called, nearest_paths, same_path
from kb_mcp.tools.rendering import named, quoted

NEEDED_TAGS: Final = ("tags", "tag")
OPTIONAL_TAGS: Final = ("tag_any", "tag_not")
TAG_FILTERS: Final = (*NEEDED_TAGS, *OPTIONAL_TAGS)
MOST_NAMED: Final = 3
UTC_DAYS: Final = "Days begin at midnight UTC; for another zone, write 'today Europe/Berlin'."


async def retried(
    engine: EngineClient, reply: JSON, ask: Callable[[JSON], Awaitable[JSON]], filters: JSON
) -> tuple[JSON, list[str]]:
    """Ask again with corrected tags and folder if they differ from existing ones only in spelling.

    If the reply is not empty, only optional and excluded tags can be wrong. Return the reply, and a text for each
    correction and each of these tags that does not exist.
    """
    if not filters or (_found(reply) and not filters.keys() & OPTIONAL_TAGS):
        return reply, []
    counts = await _counts(engine)
    fixed, said = _with_tags_meant(filters, counts)
    prefix = None if _found(reply) else filters.get("source_prefix")
    if prefix and (meant := await same_path(engine, prefix)) != prefix:
        fixed["source_prefix"] = meant
        said.append(f"No path begins with {quoted(prefix, 60)}; kb used {quoted(meant, 60)}.")
    if said:
        reply = await ask(fixed)
    return reply, [*said, *(_unknown_tags(fixed, OPTIONAL_TAGS, counts) if _found(reply) else ())]


def _found(reply: JSON) -> bool:
    return bool(reply.get("results") or reply.get("documents"))


async def _counts(engine: EngineClient) -> dict[str, int]:
    return {label["tag"]: label["branch"] for label in (await engine.tags())["tags"]}


def _with_tags_meant(filters: JSON, tags: dict[str, int]) -> tuple[JSON, list[str]]:
    """Return the filters with corrected tags, and a text for each correction."""
    fixed, said = dict(filters), list[str]()
    for name in (name for name in TAG_FILTERS if name in filters):
        fixed[name] = [tag if tag in tags else same_tag(tag, tags) for tag in filters[name]]
        pairs = zip(filters[name], fixed[name], strict=True)
        said += [f"No tag {quoted(a, 60)} exists; kb used {quoted(b, 60)}." for a, b in pairs if a != b]
    return fixed, said


def _unknown_tags(filters: JSON, names: Iterable[str], counts: dict[str, int]) -> list[str]:
    return [
        f"No tag {quoted(tag, 60)} exists.{_nearest(tag, counts)}"
        for name in names
        for tag in filters.get(name, ())
        if tag not in counts
    ]


async def nothing_found(engine: EngineClient, filters: JSON) -> str:
    """Return one line that names the filters without a match, and similar values; empty without filters.

    Raises:
        NotFound: the document to search in does not exist.
    """
    if "document_id" in filters:
        await engine.document(filters["document_id"], chunks=1)
    said = _unknown_tags(filters, (*NEEDED_TAGS, "tag_any"), await _counts(engine))
    if doc_type := filters.get("doc_type"):
        types = (await engine.status())["documents"]
        if not types_called(doc_type, types):
            listed = ", ".join(f"{name} ({count})" for name, count in types.items())
            said.append(f"No document has the type {quoted(doc_type, 60)}. Existing types: {listed or 'none'}.")
    if lang := filters.get("lang"):
        languages = (await engine.status())["languages"]
        if lang.lower() not in languages:
            listed = ", ".join(f"{name} ({count})" for name, count in languages.items())
            said.append(f"No document has the language {quoted(lang, 60)}. Existing languages: {listed or 'none'}.")
    for name in ("source_path", "source_prefix"):
        if name in filters:
            said += await _path_hint(engine, name, filters[name])
    after, before = (filters.get(name) for name in ("after", "before"))
    if after and before and datetime.fromisoformat(after) >= datetime.fromisoformat(before):
        said.append("before: must be later than after, because the day of before itself is not included.")
    if said or not filters:
        return " ".join(said)
    return "Nothing matches all of these filters. Omit some of them."


def zone_of_days(filters: JSON) -> str:
    """Return a sentence about the zone of a day that names none, or an empty string if there is no day."""
    dates = (str(filters.get(name, "")) for name in ("after", "before", "updated_after"))
    return UTC_DAYS if any(date.endswith("T00:00:00Z") for date in dates) else ""


def same_tag(tag: str, tags: Iterable[str]) -> str:
    """Return an existing tag that differs only in case, # and commas; otherwise the tag unchanged."""
    return next((other for other in tags if _folded(other) == _folded(tag)), tag)


def _folded(tag: str) -> str:
    return tag.casefold().strip("# ,\t\n")


def _nearest(tag: str, counts: dict[str, int]) -> str:
    folded = {_folded(name): name for name in counts}
    near = [folded[key] for key in get_close_matches(_folded(tag)[:100], folded, MOST_NAMED, 0.6)]
    return f" Did you mean {', '.join(f'{quoted(name, 60)} ({counts[name]})' for name in near)}?" if near else ""


async def _path_hint(engine: EngineClient, name: str, path: str) -> list[str]:
    below = await engine.documents(source_prefix=path, limit=1)
    if name == "source_path" and below["documents"]:
        return [f"No document has exactly this path. Some begin with it: kb_list(source_prefix={quoted(path)})."]
    if below["documents"]:
        return []
    head = "No document has exactly this path." if name == "source_path" else f"No path begins with {quoted(path)}."
    if called := await documents_called(engine, path):
        return [f"{head} Did you mean one of these: {named(called)}?"]
    if near := await nearest_paths(engine, path):
        return [f"No path begins with {quoted(path)}. Did you mean {', '.join(map(quoted, near))}?"]
    return [
        f"No path begins with {quoted(path)}, and no file has this name. Search for words in its text with kb_search."
    ]
