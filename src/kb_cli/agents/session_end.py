"""The end of a session as a note."""

import os
from pathlib import Path
from typing import Final

from kb.agent_sessions import entries, turns_of

MOST_CHARS: Final = 20_000
"""The number of characters kept from the end of a session."""

MOST_BYTES: Final = 16 << 20
"""The number of bytes read from the end of a transcript, because a hook has only seconds."""


def end_of_session(transcript: Path) -> str:
    """Return the end of a session as Markdown with speakers, without tools and their results."""
    parts: list[str] = []
    length = 0
    for turn in reversed(turns_of(list(entries(read_end(transcript))))):
        parts.append(f"**{turn.speaker}:** {turn.text}")
        length += len(turn.text)
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
