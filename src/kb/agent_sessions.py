"""What user and agent said, in the session files of Claude Code, Codex and Gemini CLI.

Parsing is lenient, because these programs do not document their formats, and change them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

SPEAKERS: Final = {
    "user": "User",
    "human": "User",
    "assistant": "Assistant",
    "gemini": "Assistant",
    "model": "Assistant",
}
TOOL_TAGS: Final = (
    *("bash-input", "bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr"),
    *("local-command-caveat", "system-reminder", "task-notification", "session_context"),
)
"""Tags in user messages that enclose program output and files."""

CONTEXT: Final = re.compile(
    r"(?:# AGENTS\.md instructions[^\n]*\s*)?"
    r"<(?P<tag>INSTRUCTIONS|user_instructions|environment_context|skill|user_shell_command|turn_aborted"
    r"|subagent_notification)\b.*</(?P=tag)>",
    re.DOTALL,
)
"""Parts that Codex inserts into user messages."""

ENVELOPES: Final = ("message", "payload")
"""Fields of an entry that contain the message, unless the entry is the message itself."""

TEXTS: Final = ("text", "input_text", "output_text")
"""The types of text parts in a message."""

NOT_SAID: Final = ("isMeta", "isCompactSummary", "isApiErrorMessage")
SIGNS: Final = ({"sessionId", "parentUuid"}, {"sessionId", "projectHash"})
"""Fields of an early entry of Claude Code, and of Gemini CLI."""

FIRST: Final = frozenset({"id", "timestamp", "instructions"})
"""Fields of the first entry of older versions of Codex, but also of recipes: without turns, it is no session."""

PAYLOADS: Final = ("session_meta", "response_item")
"""Types of early entries of Codex."""

EARLY: Final = 20
TITLES: Final = ("customTitle", "aiTitle", "summary")
"""Fields with the title of a session, the one that its user gave first."""

SECRET: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|\b(?:sk-|sk_live_|rk_live_|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|npm_|hf_|gsk_|whsec_|pypi-"
    r"|AGE-SECRET-KEY-|AKIA|ASIA|AIza|ya29\.|kb_(?=[\w-]{40}))(?=[\w.-]{0,200}\d)"
    r"[\w.-]{12,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=://)[^\s/:@]{0,100}:[^\s/@]{1,200}(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{16,}"
    r"|(?i:(?<=password)|(?<=passwd)|(?<=pwd)|(?<=passphrase)|(?<=passwort)|(?<=kennwort)|(?<=secret)|(?<=token)"
    r"|(?<=api_key)|(?<=api-key)|(?<=apikey)|(?<=access_key))"
    r"(?P<is>\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?)(?!\s)[^\s\"',;]{6,}",
    re.DOTALL,
)
"""Keys, tokens and passwords by their form, or by the name before them."""

LEFT_OUT: Final = "[secret left out]"


class Turn(NamedTuple):
    """What one of the two said, and when, in ISO 8601."""

    speaker: str
    text: str
    time: str | None = None


class Session(NamedTuple):
    """A session; without a title, nobody gave it one."""

    turns: list[Turn]
    title: str | None


def read_session(source: str) -> Session | None:
    """Return the session of a file; None if the file is another program's."""
    if '"sessionId"' not in source and '"payload"' not in source and '"instructions"' not in source:
        return None
    found = list(entries(source))
    said = turns_of(found)
    if not any(map(is_session, found[:EARLY])) and not (said and found[0].keys() >= FIRST):
        return None
    titles = {name: entry[name] for entry in found for name in TITLES if isinstance(entry.get(name), str)}
    return Session(said, next((titles[name] for name in TITLES if titles.get(name)), None))


def is_session(entry: dict[str, Any]) -> bool:
    has_payload = entry.get("type") in PAYLOADS and isinstance(entry.get("payload"), dict)
    return has_payload or any(fields <= entry.keys() for fields in SIGNS)


def turns_of(found: list[dict[str, Any]]) -> list[Turn]:
    """Return the turns of a session, without tools and their results, or failing that, those of a subagent."""
    own = [entry for entry in found if not entry.get("isSidechain")]
    return list(turns(own)) or list(turns(found))


def turns(found: Iterable[dict[str, Any]]) -> Iterator[Turn]:
    for entry in found:
        inner = next((value for name in ENVELOPES if isinstance(value := entry.get(name), dict)), entry)
        speaker = SPEAKERS.get(str(inner.get("role") or entry.get("type")))
        text = without_tools(message_text(inner.get("content"))) if speaker else ""
        if speaker and text and not any(map(entry.get, NOT_SAID)):
            time = entry.get("timestamp")
            said = SECRET.sub(lambda secret: (secret["is"] or "") + LEFT_OUT, text)
            # programs split surrogate pairs
            yield Turn(speaker, said.encode("utf-8", "replace").decode(), time if isinstance(time, str) else None)


def entries(transcript: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file with one JSON object, or with one on each line; skip everything else."""
    try:
        whole = json.loads(transcript)
        messages = whole.get("messages") if isinstance(whole, dict) else whole
        found = [whole, *(messages if isinstance(messages, list) else ())]
    except (ValueError, RecursionError):
        found = [parsed(line) for line in transcript.split("\n")]  # a message may contain other line ends
    yield from as_left([entry for entry in found if isinstance(entry, dict)])


def as_left(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries after the changes that Gemini CLI notes: messages set or written again, or taken back."""
    kept: dict[object, dict[str, Any]] = {}
    for number, entry in enumerate(found):
        changes = entry.get("$set")
        if isinstance(changes, dict):
            messages = changes.get("messages")
            for place, each in enumerate(messages if isinstance(messages, list) else ()):
                if isinstance(each, dict):
                    kept[_key(each, number, place)] = each
        elif "$rewindTo" in entry:
            back = entry["$rewindTo"]
            while isinstance(back, str) and back in kept:
                kept.popitem()
        else:
            kept[_key(entry, number, 0)] = entry
    return list(kept.values())


def _key(entry: dict[str, Any], *place: int) -> object:
    id_ = entry.get("id")
    return id_ if isinstance(id_, str) and str(entry.get("type")) in SPEAKERS else place


def parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def message_text(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") in TEXTS]
    stripped = [text.strip() for text in texts if isinstance(text, str)]
    return "\n\n".join(text for text in stripped if text and not CONTEXT.fullmatch(text))


def without_tools(text: str) -> str:
    for tag in TOOL_TAGS:
        closed, end, rest = text.rpartition(f"</{tag}>")
        text = re.sub(f"<{tag}>.*?</{tag}>", "", closed + end, flags=re.DOTALL) + rest
    return text.strip()
