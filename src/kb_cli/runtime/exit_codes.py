"""The exit codes of `kb`, and the errors that it raises itself."""

from __future__ import annotations

from typing import Final

from typer import TyperException

from kb.api.errors import EngineUnreachable, KbError, NotFound, SettingError, StartError, Unauthorized

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
UNAUTHORIZED: Final = 4
NOT_FOUND: Final = 5
REFUSED: Final = 6
ENGINE: Final = 7
LOCAL: Final = 8
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

MEANINGS: Final = {
    OK: "all went well",
    FAILURE: "search found nothing; any other command: something failed",
    USAGE: "the command or a setting is wrong",
    UNREACHABLE: "the engine is unreachable",
    UNAUTHORIZED: "the engine wants a key, or another one",
    NOT_FOUND: "there is no such document or job",
    REFUSED: "the engine refused the request",
    ENGINE: "the engine failed",
    LOCAL: "something on this machine failed",
    INTERRUPTED: "interrupted",
    PIPE_CLOSED: "whoever read the output stopped reading",
}


class UsageError(TyperException):
    """The command line is invalid."""

    exit_code = USAGE


class LocalError(TyperException):
    """Something on this machine failed."""

    exit_code = LOCAL


class Interrupted(TyperException):
    """An interruption by Ctrl-C with a message."""

    exit_code = INTERRUPTED


def exit_code_for(error: KbError) -> int:
    """Return the exit code for an error of the engine, its client or its start."""
    for kind, code in (
        (EngineUnreachable, UNREACHABLE),
        (Unauthorized, UNAUTHORIZED),
        (NotFound, NOT_FOUND),
        (SettingError, USAGE),
        (StartError, LOCAL),
    ):
        if isinstance(error, kind):
            return code
    return REFUSED if error.status < KbError.status else ENGINE
