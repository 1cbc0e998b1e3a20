"""Sessions of coding agents: a section for each turn, without tools, their results, and secrets of known forms."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Final

from kb.agent_sessions import Session, Turn, read_session
from kb.formats.readers import markdown
from kb.formats.readers.chats import lowered
from kb.formats.text.encoding import clean, one_line
from kb.formats.text.extracted import Extracted

_NOTHING_SAID: Final = "A session of a coding agent in which nothing was said."
_COMMAND: Final = re.compile(r"<command-(?:name|message|args)>.*?</command-(?:name|message|args)>\s*", re.DOTALL)
_LONGEST_TITLE: Final = 100


def read_agent_session(source: str) -> Extracted | None:
    """Return what user and agent said in a session file; None if a text is none."""
    session = read_session(source)
    if session is None:
        return None
    text = "\n".join(
        f"## {', '.join(filter(None, (speaker, _minute(said[0]))))}\n\n"
        + "".join(f"{lowered(turn.text)}\n\n" for turn in said)
        for speaker, said in ((name, list(turns)) for name, turns in groupby(session.turns, attrgetter("speaker")))
    )
    date = next((turn.time for turn in session.turns if turn.time), None)
    read = markdown.read(clean(text or _NOTHING_SAID).encode("utf-8", "replace"))
    return replace(read, title=_title(session), date=date, tags=())


def _minute(turn: Turn) -> str:
    return (turn.time or "")[: len("2026-03-01T10:20")].replace("T", " ")


def _title(session: Session) -> str | None:
    """Return the title that a session was given, or failing that, the first line that the user wrote."""
    written = (_COMMAND.sub("", turn.text).strip() for turn in session.turns if turn.speaker == "User")
    title = one_line(session.title or next(filter(None, written), "").lstrip("# ").partition("\n")[0])
    return title if len(title) <= _LONGEST_TITLE else f"{title[:_LONGEST_TITLE]}…"
