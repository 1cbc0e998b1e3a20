"""kb hook."""

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kb.client.brief import Brief
from kb_cli.agents.patience import patience
from kb_cli.agents.session_end import end_of_session
from kb_cli.runtime import output
from kb_cli.runtime.engine_call import call

SESSIONS: Final = "session/"
"""The prefix of the source paths of saved sessions."""


PROMPTS: Final = ("UserPromptSubmit", "BeforeAgent")
"""The event of a prompt, in Claude Code and Codex, and in Gemini CLI."""

RECALL: Final = "KB_RECALL"
OFF: Final = ("0", "off", "no", "false")


def hook() -> None:
    """Handle an event from an agent's program.

    kb reads the event as JSON from standard input. At the start of a session, it gives the agent a brief: the notes
    tagged core, preferences, decisions and open questions, and recent changes. With each prompt, it adds what kb knows
    about it, unless KB_RECALL is 0. Before a compaction and at the end of a session, it saves the conversation as a
    note. Errors never stop the agent; they go to standard error.
    """
    try:
        event = json.loads(sys.stdin.read() or "{}")
        if context := context_for(event):
            output.print_json_line(
                {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], "additionalContext": context}}
            )
        # The transcript of a subagent would replace the one of its session.
        elif event.get("transcript_path") and not event.get("agent_id") and event["hook_event_name"] not in PROMPTS:
            keep(event)
    except Exception as error:  # noqa: BLE001 - an agent may stop if this fails
        output.print_error(getattr(error, "detail", None) or f"{type(error).__name__}: {error}")


def context_for(event: dict[str, Any]) -> str:
    """Return what the agent should know; empty at events that only save something."""
    name, folder, about = event.get("hook_event_name"), session_folder(event), ""
    if name == "SessionStart":
        await_engine()
        about = call(lambda client: Brief(client, output.one_line).text(folder, session_path(event)))
    elif name in PROMPTS and os.environ.get(RECALL, "").lower() not in OFF:
        prompt = str(event.get("prompt") or "")
        with patience(is_new=False):
            about = call(lambda client: Brief(client, output.one_line).about(prompt, folder))
    return about


def await_engine() -> None:
    """Raise an error unless the engine answers soon."""
    with patience(is_new=True):
        call(lambda client: client.status())


def keep(event: dict[str, Any]) -> None:
    """Save a session as a note; its earlier state becomes an earlier version of the note."""
    text = end_of_session(Path(event["transcript_path"]))
    if not text:
        return
    await_engine()
    folder = session_folder(event)
    note: dict[str, Any] = {
        "text": text,
        "title": f"Session{f' in {folder}' if folder else ''}, {datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "tags": ["session"],
        "source_path": session_path(event),
        "thread": folder or None,
    }
    call(lambda client: client.add_note(**note))


def session_folder(event: dict[str, Any]) -> str:
    """Return the name of a session's folder, without characters that a tag cannot contain; empty without a folder."""
    name = Path(event.get("cwd") or ".").name
    return " ".join(
        "".join(character if character.isprintable() and character != "," else " " for character in name).split()
    )


def session_path(event: dict[str, Any]) -> str:
    return f"{SESSIONS}{event.get('session_id') or 'unknown'}"
