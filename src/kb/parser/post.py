"""An extractor that is a service: `python -m kb.parser.post ADDRESS` sends it standard input and prints its answer.

The part of the address behind `#`, which no server sees, says what form is sent: `file=@&format=text` is the file as
`file`, and a field. Without it the file is sent as `file`. `@` alone is no form, but the file itself, by PUT.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from kb.parser.launch import NOT_NOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BLOCK: Final = 1 << 20
BUSY: Final = (429, 502, 503, 504)
"""What services answer that are overloaded, or still starting, whatever the file is."""

FILE: Final = "@"
TEXT_KEYS: Final = ("text", "md_content", "text_content")
"""Where services of this kind put the text in JSON, at the top or in a `document`."""


Request: TypeAlias = tuple[str, "list[bytes | BinaryIO]", dict[str, str]]
"""A method, a body in parts, and headers."""


class ServiceUnavailable(Exception):
    """The service cannot be asked for now."""


def main() -> None:
    """Send standard input to the service, print the text of its answer; exit with 1 where there is none."""
    try:
        sys.stdout.buffer.write(ask(sys.argv[1], sys.stdin.buffer))
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_NOW)
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def ask(address: str, file: BinaryIO) -> bytes:
    """Return the text that the service finds in a file.

    Raises:
        ServiceUnavailable: it is out of reach, or too busy.
        OSError: it went away amid it.
        ValueError: it refuses the file, or gives no text.
    """
    parts = urlsplit(address)
    method, form, headers = as_file(file) if parts.fragment == FILE else as_form(parts.fragment, file)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {**headers, "Accept": "text/plain, */*;q=0.5", "Content-Length": str(sum(map(size_of, form)))}
    try:
        connection.connect()
    except OSError as error:
        raise ServiceUnavailable(f"{type(error).__name__}: {error}") from error
    connection.request(method, target, (block for part in form for block in blocks_of(part)), headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status in BUSY:
        raise ServiceUnavailable(f"it answered {answer.status}")
    if answer.status != http.client.OK:
        raise ValueError(f"it answered {answer.status}")
    is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
    return text_in(json.loads(body)).encode() if is_json else body


def as_file(file: BinaryIO) -> Request:
    """Return how a file is sent as it is."""
    return "PUT", [file], {"Content-Type": "application/octet-stream"}


def as_form(named: str, file: BinaryIO) -> Request:
    """Return how a file is sent in a form."""
    boundary = secrets.token_hex(16)
    fields = parse_qsl(named, keep_blank_values=True) or [("file", FILE)]
    return (
        "POST",
        list(make_form(fields, file, boundary)),
        {"Content-Type": f"multipart/form-data; boundary={boundary}"},
    )


def make_form(fields: Sequence[tuple[str, str]], file: BinaryIO, boundary: str) -> Iterable[bytes | BinaryIO]:
    """Yield the parts of a form with a file in it."""
    for name, value in fields:
        is_file = value == FILE
        filename = '; filename="file"\r\nContent-Type: application/octet-stream' if is_file else ""
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'.encode()
        yield file if is_file else value.encode()
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def size_of(part: bytes | BinaryIO) -> int:
    """Return how many bytes a part of a form has."""
    return len(part) if isinstance(part, bytes) else os.fstat(part.fileno()).st_size


def blocks_of(part: bytes | BinaryIO) -> Iterator[bytes]:
    """Yield a part of a form; a film is not held in memory."""
    if isinstance(part, bytes):
        yield part
        return
    part.seek(0)
    while block := part.read(BLOCK):
        yield block


def text_in(answer: Any) -> str:  # noqa: ANN401 - whatever the service said
    """Return the text in JSON.

    Raises:
        ValueError: there is none.
    """
    documents = [answer, answer.get("document")] if isinstance(answer, dict) else []
    for document in documents:
        for key in TEXT_KEYS:
            if isinstance(document, dict) and isinstance(document.get(key), str):
                return str(document[key])
    raise ValueError(f"its answer is JSON without {', '.join(TEXT_KEYS)}")


if __name__ == "__main__":
    main()
