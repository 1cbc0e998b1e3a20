"""Pages of the web, which the command line fetches: the engine itself asks nobody for anything."""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit

from kb import __version__
from kb_cli.runtime.exit_codes import LocalError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

SCHEMES: Final = ("http://", "https://")
MAX_BYTES: Final = 100 << 20
TIMEOUT: Final = 30.0
TOTAL_SECONDS: Final = 300
USERINFO: Final = re.compile(r"^(https?://)[^/?#]*@", re.IGNORECASE)
IN_NO_NAME: Final = re.compile(r"[^\w.\- ]+")
SUFFIXES: Final = {"text/html": ".html", "application/pdf": ".pdf", "text/markdown": ".md", "text/plain": ".txt"}
"""How names end whose address does not tell what is there."""


def is_address(name: str) -> bool:
    """Return whether it is an address of the web, and no path."""
    return name.lower().startswith(SCHEMES)


def without_userinfo(address: str) -> str:
    """Return an address without the name and password in it, which are nobody else's."""
    return USERINFO.sub(r"\1", address)


@contextmanager
def fetch(address: str) -> Iterator[tuple[str, BinaryIO]]:
    """Fetch what is at an address: what to call it, and its content.

    Raises:
        LocalError: it is not to be had, or larger or slower than anyone means.
    """
    import httpx2

    deadline = time.monotonic() + TOTAL_SECONDS
    headers = {"User-Agent": f"kb/{__version__}", "Accept": "text/html,*/*;q=0.8"}
    try:
        with (
            tempfile.TemporaryFile() as content,
            httpx2.stream("GET", address, headers=headers, follow_redirects=True, timeout=TIMEOUT) as answer,
        ):
            answer.raise_for_status()
            for block in answer.iter_bytes():
                content.write(block)
                if content.tell() > MAX_BYTES:
                    raise LocalError(f"it is larger than {MAX_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise LocalError(f"it takes longer than {TOTAL_SECONDS} seconds")
            content.seek(0)
            yield filename(address, answer.headers.get("content-type", "")), cast("BinaryIO", content)
    except httpx2.HTTPStatusError as error:
        raise LocalError(f"the server answered {error.response.status_code}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise LocalError(f"it cannot be fetched: {error or type(error).__name__}") from None


def filename(address: str, media_type: str) -> str:
    """Return a name for what was fetched, that says what kind it is."""
    parts = urlsplit(address)
    name = IN_NO_NAME.sub("-", unquote(parts.path).rstrip("/").rpartition("/")[2]) or parts.hostname or "page"
    suffix = SUFFIXES.get(media_type.partition(";")[0].strip().lower(), "")
    return name if not suffix or name.lower().endswith(suffix) else name + suffix
