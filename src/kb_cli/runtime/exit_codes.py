"""The exit codes of `kb`, and the errors that only the command line raises."""

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
    OK: "success",
    FAILURE: "search found nothing; for other commands: something failed",
    USAGE: "the command line or a setting is wrong",
    UNREACHABLE: "the engine cannot be reached",
    UNAUTHORIZED: "the API key is missing or wrong",
    NOT_FOUND: "the document or job does not exist",
    REFUSED: "the engine refused the request",
    ENGINE: "the engine failed",
    LOCAL: "a problem on this machine, such as a full disk",
    INTERRUPTED: "interrupted",
    PIPE_CLOSED: "the program that read the output closed the pipe",
}


class UsageError(TyperException):
    """The command line or an environment variable is invalid."""

    exit_code = USAGE


class LocalError(TyperException):
    """A problem on this machine: a file, a disk, an editor or another program."""

    exit_code = LOCAL


class Interrupted(TyperException):
    """An interruption by Ctrl-C with a message."""

    exit_code = INTERRUPTED


def exit_code_for(error: KbError) -> int:
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
