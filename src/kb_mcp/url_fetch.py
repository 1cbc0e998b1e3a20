"""Fetch a file from a host that the gateway's settings allow."""

import asyncio
import io
import ipaddress
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from typing import BinaryIO, Final, cast

import httpx2

from kb import __version__
from kb.api.errors import Invalid
from kb.api.limit_errors import larger_than

HOST: Final = re.compile(r"[a-z0-9.:_-]{1,253}")
SECONDS: Final = 60
MOST_REDIRECTS: Final = 5
MOST_AT_ONCE: Final = 4
"""Maximum number of fetched files at once, each of which takes disk space; the others wait."""

SIGNING: Final = re.compile(
    r"x-amz-.+|x-goog-.+|awsaccesskeyid|googleaccessid|key-pair-id|policy|signature|expires|sig|s[eprtv]|spr|sip|sk\w+"
)
"""Parameters of signed URLs of Amazon S3, CloudFront, Google Cloud Storage and Azure."""

SIGNATURE: Final = re.compile(r"(x-amz-|x-goog-)?signature|sig")
SECRET: Final = re.compile(
    r".*(token|secret|passw|credential|session|jwt|signature|hmac).*|.*(auth|key)|authorization|pw|sig"
)
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ASSIGNED: Final = ipaddress.IPv6Network("2000::/3")
EXAMPLES: Final = ipaddress.IPv6Network("3fff::/20")
TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses through a translator (RFC 6052), which may also pass on private ones."""

SPECIAL: Final = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Networks for protocols, which Python counts as global."""

OFF: Final = "url: this gateway does not fetch files. Send the file itself, or ask the user to set KB_MCP_FETCH_HOSTS."


class Fetcher:
    """Fetches files.

    Args:
        hosts: the allowed hosts in lower case, with wildcards; only a host without a wildcard may have a private
            address.
        max_bytes: the maximum size of a file.
    """

    def __init__(self, hosts: Sequence[str], max_bytes: int) -> None:
        self._hosts = hosts
        self._max_bytes = max_bytes
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    @property
    def is_on(self) -> bool:
        return bool(self._hosts)

    @asynccontextmanager
    async def fetched(self, url: str) -> AsyncIterator[BinaryIO]:
        """Yield the content of a URL, which takes disk space until the end of the block.

        Raises:
            Invalid: the host is not allowed, the download fails or is too large, or it or others take too long.
        """
        if not self._hosts:
            raise Invalid(OFF)
        try:
            async with asyncio.timeout(SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise Invalid("url: the gateway is fetching other files. Try again later.") from None
        try:
            with await self._download(url) as content:
                yield content
        finally:
            self._slots.release()

    async def _download(self, url: str) -> BinaryIO:
        try:
            async with asyncio.timeout(SECONDS), AsyncExitStack() as stack:
                client = await stack.enter_async_context(httpx2.AsyncClient(timeout=SECONDS, trust_env=False))
                for _ in range(MOST_REDIRECTS + 1):
                    request = await self._request(client, url)
                    answer = await client.send(request, stream=True)
                    stack.push_async_callback(answer.aclose)
                    if not answer.has_redirect_location:
                        return await self._content(answer)
                    url = str(httpx2.URL(url).join(answer.headers["location"]))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise Invalid(f"url: the gateway cannot fetch it: {_reason(error)}.") from error
        raise Invalid(f"url: it redirects more than {MOST_REDIRECTS} times.")

    async def _request(self, client: httpx2.AsyncClient, url: str) -> httpx2.Request:
        """Return a request to the checked address of the host, so that a second lookup cannot change it."""
        parsed = httpx2.URL(url)
        host, name = parsed.host.lower().rstrip("."), parsed.raw_host.decode().lower().rstrip(".")
        if parsed.scheme not in ("http", "https") or not HOST.fullmatch(name) or parsed.userinfo:
            raise Invalid("url: must be an http or https address without a user name: https://example.org/report.pdf.")
        if not any(fnmatchcase(host, pattern) for pattern in self._hosts):
            raise Invalid(f"url: this gateway may not fetch from {name}. Ask the user to add it to KB_MCP_FETCH_HOSTS.")
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        if host not in self._hosts and not all(_is_public(address) for address in addresses):
            raise Invalid(
                f"url: {name} has a private address. The user can list this host by name in KB_MCP_FETCH_HOSTS."
            )
        headers = {"Host": parsed.netloc.decode(), "User-Agent": f"kb/{__version__}"}
        pinned = parsed.copy_with(host=str(addresses[0]), fragment=None)
        return client.build_request("GET", pinned, headers=headers, extensions={"sni_hostname": name})

    async def _content(self, answer: httpx2.Response) -> BinaryIO:
        if not answer.is_success:
            raise Invalid(f"url: the server answered {answer.status_code}.")
        content = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
        try:
            async for block in answer.aiter_bytes():
                content.write(block)
                if content.tell() > self._max_bytes:
                    raise Invalid(f"url: the file is {larger_than(self._max_bytes)}.")
        except BaseException:
            content.close()
            raise
        content.seek(0, io.SEEK_SET)
        return content


def public_url(url: str) -> str | None:
    """Return a URL without its signature and fragment, as a path for the document; None if it has other secrets.

    Without the secrets, URLs of several documents could be equal, and one document would replace another.
    """
    parsed = httpx2.URL(url).copy_with(fragment=None)
    names = [name.lower() for name in parsed.params]
    if any(map(SIGNATURE.fullmatch, names)):
        rest = [(name, value) for name, value in parsed.params.multi_items() if not SIGNING.fullmatch(name.lower())]
        parsed = parsed.copy_with(params=rest or None)
    return None if any(SECRET.fullmatch(name.lower()) for name in parsed.params) else str(parsed)


def _reason(error: Exception) -> str:
    """Return the reason of a failure, without words of the server."""
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return f"it took more than {SECONDS} seconds"
    if isinstance(error, httpx2.InvalidURL | UnicodeError):
        return "it leads to an invalid address"
    if isinstance(error, httpx2.ConnectError | OSError):
        return str(error) or type(error).__name__
    return f"the connection failed ({type(error).__name__})"


def _is_public(address: Address) -> bool:
    """Whether an address is public: for IPv6, in the assigned range, or with a public IPv4 address inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not (address.is_multicast or any(address in special for special in SPECIAL))
    inner = address.ipv4_mapped or address.sixtofour
    if address in TRANSLATED:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return _is_public(inner) if inner else address in ASSIGNED and address.is_global and address not in EXAMPLES
