"""An extractor that is a service: `python -m kb.parser.service ADDRESS` posts standard input and prints the answer.

The address's fragment, which is not sent to the server, describes the form: `file=@&format=text` sends the file as
`file`, and a field `format`. Without a fragment, the file is sent as `file`. The fragment `@` sends only the file, by
PUT.
"""

import sys
from http import HTTPStatus
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qsl

import httpx2

from kb.parser.extractor_exec import NOT_NOW

BUSY: Final = (429, 502, 503, 504)
"""The answers of services that are overloaded or still starting, regardless of the file."""

FILE: Final = "@"
BINARY: Final = "application/octet-stream"
HEADERS: Final = {"Accept": "text/plain, */*;q=0.5", "Accept-Encoding": "identity"}
TEXT_KEYS: Final = ("text", "md_content", "text_content")
"""The JSON keys in which such services return the text, at the top or in a `document`."""


class ServiceUnavailable(Exception):
    """The service is unavailable at the moment."""


def main() -> None:
    """Send standard input to the service and print the text of its answer; exit with 1 if it has no text."""
    try:
        sys.stdout.buffer.write(ask(sys.argv[1], sys.stdin.buffer))
    except ServiceUnavailable as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_NOW)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def ask(address: str, file: BinaryIO) -> bytes:
    """Return the text that the service finds in a file, without loading the file into memory.

    Raises:
        ServiceUnavailable: it is unreachable, or too busy.
        httpx2.HTTPError, httpx2.InvalidURL: the connection broke, or the address is invalid.
        ValueError: it refuses the file, or returns no text.
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


def text_in(answer: Any) -> str:  # noqa: ANN401 - any JSON
    documents = [answer, answer.get("document")] if isinstance(answer, dict) else []
    for document in documents:
        for key in TEXT_KEYS:
            if isinstance(document, dict) and isinstance(document.get(key), str):
                return str(document[key])
    raise ValueError(f"its answer is JSON without {', '.join(TEXT_KEYS)}")


if __name__ == "__main__":
    main()
