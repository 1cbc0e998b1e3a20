"""The process that parses files, `python -m kb.parser.process`: it may hang, crash or run out of memory, alone.

It reads requests from standard input and answers on standard output (see `kb.parser.protocol`). It knows nothing of the
engine but the path of one file at a time, and ends when the engine does.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from kb.parser.protocol import pack, receive, send

if TYPE_CHECKING:
    from typing import Any, BinaryIO

_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Serve requests until there are no more."""
    engine, address_space = map(int, sys.argv[1:])
    _end_with(engine)
    _limit_memory(address_space)
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a parser prints must not get between the replies
    send(replies, {"ready": True})
    try:
        while True:
            _answer(receive(requests), replies)
    except (EOFError, BrokenPipeError):
        sys.exit()


def _answer(request: dict[str, Any], replies: BinaryIO) -> None:
    try:
        doc_type, extracted = extract(Path(request["path"]), request["filename"])
    except Unreadable as error:
        send(replies, {"unreadable": error.detail})
    except MemoryError:
        send(replies, {"out_of": "memory"})
    else:
        if len(extracted.text) > request["max_chars"]:
            send(replies, {"out_of": "output"})
        else:
            send(replies, pack(doc_type, extracted), *(attachment.data for attachment in extracted.attachments))


def _end_with(engine: int) -> None:
    """See to it that this process does not outlive the engine, not even in the middle of a file."""
    if sys.platform != "linux":
        return  # elsewhere it ends when it next looks for a request
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != engine:
        sys.exit()


def _limit_memory(address_space: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # macOS does not keep to it
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


if __name__ == "__main__":
    main()
