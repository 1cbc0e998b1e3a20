"""An extractor that is a service: `python -m kb.parser.service ADDRESS` sends it standard input and prints its answer.

The part of the address behind `#`, which no server sees, says what form is sent: `file=@&format=text` is the file as
`file`, and a field. Without it the file is sent as `file`. `@` alone is no form, but the file itself, by PUT.
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qsl

import httpx2

from kb.parser.extractor_exec import NOT_NOW

BUSY: Final = (429, 502, 503, 504)
"""What services answer that are overloaded, or still starting, whatever the file is."""

FILE: Final = "@"
BINARY: Final = "application/octet-stream"
HEADERS: Final = {"Accept": "text/plain, */*;q=0.5", "Accept-Encoding": "identity"}
TEXT_KEYS: Final = ("text", "md_content", "text_content")
"""Where services of this kind put the text in JSON, at the top or in a `document`."""


class ServiceUnavailable(Exception):
    """The service cannot be asked for now."""


def main() -> None:
    """Send standard input to the service, print the text of its answer; exit with 1 where there is none."""
    try:
        sys.stdout.buffer.write(ask(sys.argv[1], sys.stdin.buffer))
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_NOW)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def ask(address: str, file: BinaryIO) -> bytes:
    """Return the text that the service finds in a file, which is not held in memory.

    Raises:
        ServiceUnavailable: it is out of reach, or too busy.
        httpx2.HTTPError, httpx2.InvalidURL: it went away amid it, or its address is none.
        ValueError: it refuses the file, or gives no text.
    """
    url, _, form = address.partition("#")
    with httpx2.Client(headers=HEADERS, timeout=None, trust_env=False) as client:
        try:
            if form == FILE:
                answer = client.put(url, content=file, headers={"Content-Type": BINARY})
            else:
                fields = parse_qsl(form, keep_blank_values=True) or [("file", FILE)]
                sent = [(name, ("file", file, BINARY) if value == FILE else (None, value)) for name, value in fields]
                answer = client.post(url, files=sent)
        except httpx2.ConnectError as error:
            raise ServiceUnavailable(f"{type(error).__name__}: {error}") from error
    if answer.status_code in BUSY:
        raise ServiceUnavailable(f"it answered {answer.status_code}")
    if answer.status_code != HTTPStatus.OK:
        raise ValueError(f"it answered {answer.status_code}")
    is_json = answer.headers.get("Content-Type", "").startswith("application/json")
    return text_in(answer.json()).encode() if is_json else answer.content


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
