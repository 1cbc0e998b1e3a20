"""The programs that may ask for access: known by a document at their id, or registered.

A registration is not stored: the id of a registered client contains its name and its callbacks, which are checked at
each use. Equal registrations get the same id, and a flood of them takes no space.
"""

import asyncio
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from fastmcp.server.auth.cimd import CIMDDocument, CIMDFetcher, CIMDFetchError, CIMDValidationError
from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import InvalidRedirectUriError, InvalidScopeError, OAuthClientInformationFull
from pydantic import AnyUrl

from kb.api.rights import SCOPES

REGISTERED: Final = "kb-"
"""The beginning of the ids of registered clients."""

MAX_NAME: Final = 100
MAX_CALLBACKS: Final = 10
MAX_ID: Final = 3000
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
FETCH_SECONDS: Final = 5.0
MOST_FETCHES: Final = 2
"""At once: anyone can make kb fetch documents of the known hosts, but not many."""

PART: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
"""A part of a path that an asterisk stands for."""

PORT: Final = re.compile("[1-9][0-9]{0,4}")
UNSAFE: Final = ("javascript", "data", "file", "vbscript", "about", "blob")
GRANTS: Final = ["authorization_code", "refresh_token"]


class Client(OAuthClientInformationFull):
    """A program that may ask for access, with its callbacks byte for byte."""

    callbacks: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether a document at a known host describes it, so that its name is not only its own claim."""
        return not self.client_id.startswith(REGISTERED)

    @property
    def shown_name(self) -> str:
        return " ".join((self.client_name or "").split())[:MAX_NAME] or "A program without a name"

    def takes(self, callback: str) -> bool:
        """Whether codes may be sent to a callback."""
        return any(admits(known, callback) for known in self.callbacks)

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """See the base class. `takes` has checked the same callback byte for byte, before it was parsed."""
        if redirect_uri is None or not any(admits(str(AnyUrl(known)), str(redirect_uri)) for known in self.callbacks):
            raise InvalidRedirectUriError("this client may not use this redirect_uri")
        return redirect_uri

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """Return the scopes that kb has; clients also ask for those of other servers."""
        if requested_scope is None:
            return None
        known: list[str] = [scope for scope in SCOPES if scope in requested_scope.split()]
        if not known:
            raise InvalidScopeError(f"scope: kb only knows {', '.join(SCOPES)}")
        return known


class Clients:
    """All clients.

    Args:
        callbacks: the callbacks of the owner's own clients, besides the shipped ones; their hosts may also describe
            clients in documents.
    """

    def __init__(self, callbacks: Sequence[str] = ()) -> None:
        shipped = known_clients()
        self._callbacks = [*shipped["callbacks"], *callbacks]
        own_hosts = [host for callback in callbacks if (host := urlsplit(callback).hostname)]
        self._hosts = {*shipped["hosts"], *own_hosts}
        self._documents = {document["client_id"]: made_client(**document) for document in shipped["documents"]}
        self._fetcher = CIMDFetcher(timeout=FETCH_SECONDS)
        self._turns = asyncio.Semaphore(MOST_FETCHES)
        self._fetches: set[asyncio.Task[CIMDDocument]] = set()

    async def get(self, client_id: str, callback: str | None = None) -> Client | None:
        """Return a client; None if it is unknown.

        A shipped document is used as long as it has the callback. Only otherwise is the document fetched.
        """
        if client_id.startswith(REGISTERED):
            return self._registered(client_id)
        if "*" in client_id:
            return None
        shipped = self._documents.get(client_id) or self._of_pattern(client_id)
        if shipped and (callback is None or shipped.takes(callback)):
            return shipped
        fetched = await self._fetched(client_id)
        if fetched:
            self._documents |= {client_id: fetched} if shipped else {}
        return fetched or shipped

    def register(self, asked: OAuthClientInformationFull) -> None:
        """Turn a request for registration into its answer.

        Raises:
            RegistrationError: a callback is not allowed, or the request is too long.
        """
        callbacks = sorted({str(callback) for callback in asked.redirect_uris or ()})
        if not callbacks or len(callbacks) > MAX_CALLBACKS:
            raise RegistrationError("invalid_redirect_uri", f"redirect_uris: 1 to {MAX_CALLBACKS} addresses")
        for callback in callbacks:
            if not self._allows(callback):
                raise RegistrationError(
                    "invalid_redirect_uri",
                    f"{callback[:200]}: this server sends codes only to programs on the same machine and to known"
                    " services. Its owner can add others to KB_MCP_OAUTH_REDIRECTS.",
                )
        client_id = _encoded((asked.client_name or "")[:MAX_NAME], callbacks)
        if len(client_id) > MAX_ID:
            raise RegistrationError("invalid_client_metadata", "the redirect_uris are too long")
        asked.client_id = client_id
        asked.token_endpoint_auth_method, asked.client_secret, asked.client_secret_expires_at = "none", None, None
        asked.grant_types, asked.scope, asked.client_id_issued_at = GRANTS, " ".join(SCOPES), None

    def _of_pattern(self, client_id: str) -> Client | None:
        """Return the client of a shipped document whose id, like its callback, has a part of the client's own."""
        for known, client in self._documents.items():
            before, star, after = known.partition("*")
            own = client_id.removeprefix(before).removesuffix(after)
            if star and client_id == f"{before}{own}{after}" and PART.fullmatch(own):
                callbacks = [callback.replace("*", own) for callback in client.callbacks]
                return made_client(client_id, client.client_name or "", callbacks)
        return None

    def _registered(self, client_id: str) -> Client | None:
        try:
            name, *callbacks = _decoded(client_id)
            client = made_client(client_id, name, callbacks)
            is_ours = client_id == _encoded(name, callbacks) and callbacks and all(map(self._allows, callbacks))
        except (ValueError, TypeError, RecursionError):  # ValidationError is a ValueError
            return None
        return client if is_ours else None

    def _allows(self, callback: str) -> bool:
        """Whether a registered client may have a callback: on the same machine, or a known one."""
        try:
            parts = urlsplit(callback)
            is_plain = parts.username is None and not parts.fragment and "\\" not in callback and _is_visible(callback)
            is_local = parts.scheme == "http" and parts.hostname in LOOPBACK and (parts.port is None or parts.port > 0)
        except ValueError:
            return False
        return is_plain and (is_local or any(_is_like(known, callback) for known in self._callbacks))

    async def _in_turn(self, client_id: str) -> CIMDDocument:
        """Fetch a document. Its turn ends with the fetch: the search for an address goes on if nobody waits."""
        await self._turns.acquire()
        fetch = asyncio.create_task(self._fetcher.fetch(client_id))
        fetch.add_done_callback(self._end_turn)
        self._fetches.add(fetch)
        return await asyncio.shield(fetch)

    def _end_turn(self, fetch: asyncio.Task[CIMDDocument]) -> None:
        self._turns.release()
        self._fetches.discard(fetch)
        if not fetch.cancelled():
            fetch.exception()  # otherwise asyncio complains if nobody waits

    async def _fetched(self, client_id: str) -> Client | None:
        if not _is_document(client_id) or urlsplit(client_id).hostname not in self._hosts:
            return None
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                document = await self._in_turn(client_id)
        except (CIMDFetchError, CIMDValidationError, TimeoutError):
            return None
        callbacks = [callback for callback in document.redirect_uris if "*" not in callback and _is_safe(callback)]
        if str(document.client_id) != client_id or not callbacks:
            return None
        return made_client(client_id, document.client_name or urlsplit(client_id).hostname or "", callbacks)


def admits(known: str, callback: str) -> bool:
    """Whether a callback is the known one, byte for byte.

    If the known one is on the same machine and has no port, the callback may have any (RFC 8252, 7.3).
    """
    if callback == known:
        return True
    parts = urlsplit(known)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or parts.port is not None:
        return False
    before = f"http://{parts.netloc}"
    rest = known.removeprefix(before)
    port = callback.removeprefix(f"{before}:").removesuffix(rest)  # `urlsplit` of a callback would drop characters
    return PORT.fullmatch(port) is not None and callback == f"{before}:{port}{rest}"


def made_client(client_id: str, client_name: str, redirect_uris: Iterable[str]) -> Client:
    callbacks = tuple(redirect_uris)
    return Client(
        client_id=client_id,
        client_name=client_name,
        redirect_uris=[AnyUrl(callback) for callback in callbacks],
        callbacks=callbacks,
        token_endpoint_auth_method="none",  # noqa: S106 - the name of a method
        grant_types=GRANTS,
        scope=" ".join(SCOPES),
    )


@cache
def known_clients() -> dict[str, Any]:
    """Return the shipped lists of callbacks and of hosts with documents, and copies of some documents."""
    shipped: dict[str, Any] = json.loads(files("kb_mcp.oauth").joinpath("known_clients.json").read_text("utf-8"))
    return shipped


def _is_document(client_id: str) -> bool:
    """Whether an id is the plain address of a document (draft-ietf-oauth-client-id-metadata-document, 3)."""
    try:
        parts = urlsplit(client_id)
        is_plain = parts.port is None and parts.username is None and not parts.fragment and not parts.query
    except ValueError:
        return False
    has_dots = any(part in (".", "..") for part in parts.path.split("/")) or "%" in parts.path
    is_plain = is_plain and _is_visible(client_id) and not has_dots
    return parts.scheme == "https" and is_plain and parts.path not in ("", "/")


def _is_safe(callback: str) -> bool:
    parts = urlsplit(callback)
    is_elsewhere = parts.scheme == "http" and parts.hostname not in LOOPBACK
    is_plain = parts.username is None and _is_visible(callback)
    return bool(parts.scheme) and parts.scheme not in UNSAFE and not is_elsewhere and is_plain


def _is_visible(address: str) -> bool:
    """Whether an address has only characters that no parser drops or changes."""
    return re.fullmatch("[!-~]+", address) is not None


def _is_like(known: str, callback: str) -> bool:
    """Whether a callback is a known one; a final asterisk stands for one more part of a path."""
    if not known.endswith("/*"):
        return callback == known
    return callback.startswith(known[:-1]) and PART.fullmatch(callback.removeprefix(known[:-1])) is not None


def _encoded(name: str, callbacks: Sequence[str]) -> str:
    text = json.dumps([name, *callbacks], separators=(",", ":"))
    return REGISTERED + urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(client_id: str) -> list[str]:
    """Return the name and the callbacks in the id of a registered client.

    Raises:
        ValueError: it is not such an id.
    """
    coded = client_id.removeprefix(REGISTERED)
    if len(client_id) > MAX_ID:
        raise ValueError("it is too long")
    values = json.loads(urlsafe_b64decode(coded + "=" * (-len(coded) % 4)))
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("it is not a list of strings")
    "".join(values).encode()  # fails for half a surrogate pair, which no page can show
    return values
