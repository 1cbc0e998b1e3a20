"""Fetch web pages from the command line: the engine itself connects to no other machine."""

from __future__ import annotations

import codecs
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import unescape
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast
from urllib.parse import unquote, urljoin, urlsplit

from kb import __version__
from kb.api.limit_errors import larger_than
from kb.api.web_address import is_same_page, is_spelling_of, page_address
from kb_cli.runtime.exit_codes import LocalError

if TYPE_CHECKING:
    from httpx2 import Response

MAX_BYTES: Final = 100 << 20
TIMEOUT: Final = 30.0
TOTAL_SECONDS: Final = 300
READABLE_BYTES: Final = 10 << 20
"""The main part of larger pages is not extracted."""
READABLE_SECONDS: Final = 30
PAGES: Final = ("text/html", "application/xhtml+xml")
USERINFO: Final = re.compile(r"^(https?://)[^/?#]*@", re.IGNORECASE)
ERRNO: Final = re.compile(r"^\[Errno -?\d+\] ")
NOT_IN_NAMES: Final = re.compile(r"[^\w.\- ]+")
SUFFIXES: Final = {"text/html": ".html", "application/pdf": ".pdf", "text/markdown": ".md", "text/plain": ".txt"}
"""Suffixes for addresses that do not show the type of their content."""
SUPERSETS: Final = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254"}
"""Browsers read these encodings as a superset; otherwise, quotation marks would become control characters."""
ENCODINGS: Final = frozenset(
    (
        *("ascii", "utf-8", "utf-16", "utf-16-be", "utf-16-le", "gbk", "gb2312", "gb18030", "hz", "big5", "big5hkscs"),
        *("euc_jp", "iso2022_jp", "shift_jis", "cp932", "euc_kr", "cp949", "cp866", "cp874", "koi8-r", "koi8-u"),
        *("mac-roman", "mac-cyrillic", "tis-620", *(f"cp{1250 + number}" for number in range(9))),
        *(f"iso8859-{number}" for number in (*range(1, 12), *range(13, 17))),
    )
)
"""Encodings that browsers know, by their names in Python. Python has others that take hours or are not for text."""

FOR_GOOD: Final = (301, 308)
"""Statuses of redirects from an old address."""

HEAD_BYTES: Final = 1 << 18
COMMENT: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
LINK: Final = re.compile(rb"<link\b[^<>]{1,4000}>", re.IGNORECASE)
CANONICAL: Final = re.compile(rb"""\brel\s*=\s*["']?canonical\b""", re.IGNORECASE)
HREF: Final = re.compile(rb"""\bhref\s*=\s*("[^"]+"|'[^']+'|[^\s"'>]+)""", re.IGNORECASE)

NO_TEXT: Final = re.compile(rb"[\0-\x08\x10-\x1a\x1c-\x1f]")
"""Bytes that occur only in UTF-16 text or in binary data."""


def without_userinfo(address: str) -> str:
    """Return an address without its user name and password, which are private."""
    return USERINFO.sub(r"\1", address)


class Fetched(NamedTuple):
    """The content of an address; if the main part of a page was wanted but not found, also the reason.

    `addresses` has the address as given, after permanent redirects, and as the page itself names it.
    """

    name: str
    content: BinaryIO
    why_whole: str = ""
    addresses: Sequence[str] = ()


@contextmanager
def fetch(address: str, *, whole: bool = False) -> Iterator[Fetched]:
    """Fetch an address; for a page only its main part, unless `whole` is set."""
    import httpx2

    headers = {"User-Agent": f"kb/{__version__}", "Accept": "text/html,*/*;q=0.8"}
    try:
        with (
            tempfile.TemporaryFile() as content,
            httpx2.stream("GET", address, headers=headers, follow_redirects=True, timeout=TIMEOUT) as answer,
        ):
            answer.raise_for_status()
            download(answer, cast("BinaryIO", content))
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            addresses = list(page_addresses(without_userinfo(address), answer, cast("BinaryIO", content), kind))
            fetched = Fetched(filename(address, kind), cast("BinaryIO", content), addresses=addresses)
            if kind.startswith("text/") or kind in PAGES:
                fetched = fetched._replace(content=recoded(fetched.content, answer.charset_encoding))
            if kind in PAGES and not whole:
                fetched = readable(fetched, str(answer.url))
            fetched.content.seek(0)
            yield fetched
    except httpx2.HTTPStatusError as error:
        raise LocalError(f"the server answered {error.response.status_code}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = ERRNO.sub("", str(error)) or type(error).__name__
        raise LocalError(f"kb cannot fetch it: {reason}") from None


def download(answer: Response, content: BinaryIO) -> None:
    deadline = time.monotonic() + TOTAL_SECONDS
    for block in answer.iter_bytes():
        content.write(block)
        if content.tell() > MAX_BYTES:
            raise LocalError(f"it is {larger_than(MAX_BYTES)}")
        if time.monotonic() > deadline:
            raise LocalError(f"the download took longer than {TOTAL_SECONDS} seconds")


def page_addresses(address: str, answer: Response, content: BinaryIO, kind: str) -> Iterator[str]:
    """Yield the address of a page as given, where it moved to for good, and the canonical one."""
    address = page_address(address)
    yield address
    moves = [page_address(without_userinfo(str(each.url))) for each in (*answer.history, answer)]
    for moved, (before, after) in zip(answer.history, pairwise(moves), strict=True):
        if moved.status_code not in FOR_GOOD and not is_spelling_of(before, after):
            return  # perhaps to a page to sign in
        address = after
    yield address
    content.seek(0)
    head = COMMENT.sub(b"", content.read(HEAD_BYTES)) if kind in PAGES else b""
    tags = (tag for tag in LINK.findall(head) if CANONICAL.search(tag))
    for target in filter(None, map(HREF.search, tags)):
        with suppress(ValueError):
            canonical = page_address(
                urljoin(str(answer.url), unescape(target[1].strip(b"\"'").decode("utf-8", "replace")))
            )
            if is_same_page(address, canonical):
                yield without_userinfo(canonical)


def recoded(content: BinaryIO, encoding: str | None) -> BinaryIO:
    """Return a text as UTF-8 if only its server names the encoding.

    Servers often name one encoding for all their files. The content stays unchanged if it is UTF-8 already, is not
    text, or does not fit that encoding.
    """
    if encoding is None:
        return content
    content.seek(0)
    data = content.read()
    is_utf_8 = b"\x1b" not in data and decoded(data, "utf-8") is not None
    text = None if is_utf_8 or NO_TEXT.search(data) else decoded(data, encoding)
    return content if text is None else io.BytesIO(text.encode("utf-8-sig", "replace"))


def decoded(data: bytes, encoding: str) -> str | None:
    """Return text decoded with a declared encoding; None if it does not fit or is unknown."""
    try:
        name = codecs.lookup(encoding).name
        return data.decode(SUPERSETS.get(name, name)) if name in ENCODINGS else None
    except (UnicodeError, LookupError):
        return None


def readable(fetched: Fetched, address: str) -> Fetched:
    """Return the main part of a page, or all of it with the reason if the main part cannot be extracted."""
    if find_spec("trafilatura") is None:
        return fetched._replace(why_whole="trafilatura is not installed")
    if fetched.content.seek(0, io.SEEK_END) > READABLE_BYTES:
        return fetched._replace(why_whole=f"it is {larger_than(READABLE_BYTES)}")
    fetched.content.seek(0)
    command = [sys.executable, "-P", "-m", "kb_cli.sync.article", without_userinfo(address)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}  # without keys
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - our own program
            command,
            input=fetched.content.read(),
            capture_output=True,
            timeout=READABLE_SECONDS,
            env=environment,
            check=False,
        )
        if done.returncode == 0 and done.stdout:
            return fetched._replace(content=io.BytesIO(done.stdout))
    return fetched._replace(why_whole="kb could not extract its main text")


def filename(address: str, kind: str) -> str:
    """Return a file name for an address, with a suffix for its type."""
    parts = urlsplit(address)
    name = NOT_IN_NAMES.sub("-", unquote(parts.path).rstrip("/").rpartition("/")[2]) or parts.hostname or "page"
    suffix = SUFFIXES.get(kind, "")
    return name if not suffix or name.lower().endswith(suffix) else name + suffix
