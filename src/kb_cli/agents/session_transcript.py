"""Read the conversation from an agent's transcript."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

SPEAKERS: Final = {
    "user": "User",
    "human": "User",
    "assistant": "Assistant",
    "gemini": "Assistant",
    "model": "Assistant",
}
MOST_CHARS: Final = 20_000
"""The number of characters kept from the end of a session."""

MOST_BYTES: Final = 16 << 20
"""The number of bytes read from the end of a transcript, because a hook has only seconds."""

TOOL_TAGS: Final = (
    *("bash-input", "bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr"),
    *("local-command-caveat", "system-reminder", "task-notification"),
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


def read_session(transcript: Path) -> str:
    """Return the end of a session as Markdown with speakers, without tools and their results.

    Parsing is lenient, because programs change their formats.
    """
    parts: list[str] = []
    length = 0
    for speaker, text in reversed(list(turns(read_end(transcript)))):
        parts.append(f"**{speaker}:** {text}")
        length += len(text)
        if length > MOST_CHARS:
            parts[-1] = parts[-1][: MOST_CHARS - length + len(parts[-1])] + " …"
            break
    return "\n\n".join(reversed(parts))


def read_end(transcript: Path) -> str:
    with transcript.open("rb") as file:
        skipped = max(0, file.seek(0, os.SEEK_END) - MOST_BYTES)
        file.seek(skipped)
        if skipped:
            file.readline()
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def turns(transcript: str) -> Iterator[tuple[str, str]]:
    """Yield each speaker and text, from a file with one JSON object or one per line."""
    for entry in entries(transcript):
        inner = next((value for name in ENVELOPES if isinstance(value := entry.get(name), dict)), entry)
        speaker = SPEAKERS.get(str(inner.get("role") or entry.get("type")))
        text = without_tools(message_text(inner.get("content")))
        if speaker and text and not (entry.get("isMeta") or entry.get("isSidechain")):
            yield speaker, text.encode("utf-8", "replace").decode()  # programs split surrogate pairs


def entries(transcript: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a transcript; skip everything else."""
    try:
        whole = json.loads(transcript)
        messages = whole.get("messages", [whole]) if isinstance(whole, dict) else whole
    except (ValueError, RecursionError):
        messages = [parsed(line) for line in transcript.split("\n")]  # a message may contain other line ends
    yield from (message for message in messages if isinstance(message, dict)) if isinstance(messages, list) else ()


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
