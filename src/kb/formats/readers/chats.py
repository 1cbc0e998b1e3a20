"""ChatGPT and Claude exports: each conversation is a separate document with its date and speakers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kb.formats.text.batches import MAX_PARTS, batches, contents, filename_from_title, front_matter_lines
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Attachment, Extracted
from kb.markdown.front_matter import INLINE_TAGS

_SPEAKERS: Final = {"user": "You", "human": "You", "assistant": "Assistant", "tool": "Tool"}
_ID_CHARS: Final = 8
_HEADING: Final = re.compile(
    r"(?ms)^ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*\s*?$|\Z)|^(?=#{1,6}\s)"
)
"""A heading within a turn, which moves below the turn's own heading; or a code block, which has no headings."""

Conversation = dict[str, Any]


class Turn(NamedTuple):
    """One message of a conversation: its speaker, text and time."""

    speaker: str
    text: str
    time: datetime | None


def read_chats(source: str) -> Extracted | None:
    """Return the conversations of an export as attachments; None if a text is not an export."""
    if '"mapping"' not in source and '"chat_messages"' not in source:
        return None
    try:
        return _chats(json.loads(source))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # another program's file after all
        return None


def _chats(export: object) -> Extracted | None:
    if not isinstance(export, list) or not all(map(_is_conversation, export)):
        return None
    conversations = sorted(
        (conversation for conversation in export if any(turn.text.strip() for turn in _turns(conversation))),
        key=_moment,
    )
    if not conversations:
        return None
    files = list(_exports(conversations) if len(conversations) > MAX_PARTS else map(_file, conversations))
    titles = [f"{_moment(conversation)[:10]} {_title(conversation)}".strip() for conversation in conversations]
    count = "1 conversation" if len(titles) == 1 else f"{len(titles)} conversations"
    return contents("Conversations", count, titles, files)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    mapping, messages = value.get("mapping"), value.get("chat_messages")
    if isinstance(messages, list):
        return all(isinstance(message, dict) for message in messages)
    return isinstance(mapping, dict) and all(
        isinstance(node, dict) and ("message" in node or "parent" in node) for node in mapping.values()
    )


def _exports(conversations: list[Conversation]) -> Iterator[Attachment]:
    """Yield smaller exports, with the oldest conversations together, so that later exports contain the same ones."""
    for batch in batches(conversations):
        export = json.dumps(batch.items, ensure_ascii=False)
        yield Attachment(f"{batch.first:05}-{batch.last:05}.json", export.encode("utf-8", "replace"))


def _file(conversation: Conversation) -> Attachment:
    """Return a conversation as Markdown, with a section for each turn."""
    fields = {"title": _title(conversation), "date": _moment(conversation), INLINE_TAGS: "false"}
    turns = "\n".join(
        f"## {turn.speaker}{f', {turn.time:%Y-%m-%d %H:%M}' if turn.time else ''}\n\n{lowered(turn.text)}\n"
        for turn in _turns(conversation)
        if turn.text.strip()
    )
    name = filename_from_title(fields["title"])
    id_ = str(conversation.get("conversation_id") or conversation.get("id") or conversation.get("uuid") or "")
    content = clean(f"{front_matter_lines(fields)}\n{turns}")
    return Attachment(f"{name} {id_[:_ID_CHARS]}".strip() + ".md", content.encode("utf-8", "replace"))


def lowered(text: str) -> str:
    return _HEADING.sub(lambda heading: heading[0] or "##", text)


def _title(conversation: Conversation) -> str:
    return one_line(str(conversation.get("title") or conversation.get("name") or "")) or "Conversation"


def _moment(conversation: Conversation) -> str:
    time = _time(conversation.get("create_time") or conversation.get("created_at"))
    return time.astimezone(UTC).isoformat() if time else ""


def _turns(conversation: Conversation) -> Iterator[Turn]:
    messages = conversation.get("chat_messages")
    if isinstance(messages, list):
        for message in messages:
            yield Turn(_speaker(message.get("sender")), _claude_text(message), _time(message.get("created_at")))
        return
    for message in _branch(conversation["mapping"], conversation.get("current_node")):
        author, content = message.get("author"), message.get("content")
        role = author.get("role") if isinstance(author, dict) else None
        if role != "system" and isinstance(content, dict):
            yield Turn(_speaker(role), _chatgpt_text(content), _time(message.get("create_time")))


def _branch(mapping: Mapping[str, Any], node: object) -> list[dict[str, Any]]:
    """Return the messages that lead to the last one: an edited conversation has other branches."""
    messages = []
    seen = set()
    if not isinstance(node, str) or node not in mapping:
        node = next((key for key in reversed(list(mapping)) if not mapping[key].get("children")), None)
    while isinstance(node, str) and node in mapping and node not in seen:
        seen.add(node)
        entry = mapping[node]
        if isinstance(entry.get("message"), dict):
            messages.append(entry["message"])
        node = entry.get("parent")
    return messages[::-1]


def _chatgpt_text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    texts = parts if isinstance(parts, list) else [content.get("text")]
    return "\n\n".join(text for part in texts if (text := part if isinstance(part, str) else _text_in(part)))


def _claude_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    texts = [_text_in(part) for part in content] if isinstance(content, list) else []
    files = message.get("attachments")
    texts += [
        f"{file.get('file_name') or 'file'}:\n\n{file['extracted_content']}"
        for file in (files if isinstance(files, list) else [])
        if isinstance(file, dict) and isinstance(file.get("extracted_content"), str)
    ]
    written = message.get("text")
    return "\n\n".join(filter(None, texts)) or (written if isinstance(written, str) else "")


def _text_in(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _speaker(role: object) -> str:
    return _SPEAKERS.get(str(role), one_line(str(role or "Someone")).capitalize())


def _time(value: object) -> datetime | None:
    """Return the time from seconds since 1970 or from ISO 8601 text."""
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC).replace(microsecond=0)
        return datetime.fromisoformat(value).replace(microsecond=0) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
