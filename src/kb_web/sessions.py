"""Sessions of visitors, and the tokens that protect forms against other sites."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.api.errors import Forbidden, ForeignOrigin
from kb.api.limits import MAX_TAGS
from kb.api.version_check import USER_AGENT
from kb.asgi.body_limits import MAX_FIELD
from kb.asgi.hosts import outer_path
from kb.client.asgi import ASGITransport, asgi_scope
from kb.client.client import PREFIX, EngineClient
from kb.client.transport import Outgoing
from kb.clock import own_time
from kb_web.forms import OTHER_FIELDS, read_form

COOKIE: Final = "kb_session"
DAYS: Final = 30
MAX_SESSIONS: Final = 1000
ROTATE_SECONDS: Final = 12 * 3600
LATE_SECONDS: Final = 60
"""How long a previous session id remains valid, for requests that were in progress during the change."""

SECURE: Final = "https"


@dataclass(slots=True)
class Session:
    """The session of a visitor, signed in with a key."""

    key: str
    right: str
    """The right of the key: `read`, `write` or `admin`."""

    seed: str
    """The base of its tokens; it stays the same when the id changes."""

    since: float = field(default_factory=time.monotonic)
    """When its id was created."""

    until: float = field(default_factory=lambda: time.monotonic() + DAYS * 86400)


@dataclass(frozen=True, slots=True)
class Notice:
    """The outcome of an action, shown once on the next page.

    `operation` is the number to undo it by, `links` has pages with their titles.
    """

    text: str
    operation: int | None = None
    place: str = ""
    links: tuple[tuple[str, str], ...] = ()


class Visit:
    """The session of a request, with access to the engine.

    Attributes:
        engine: a client that uses the key of the visitor.
        token: the token that a form must send.
        is_secure: whether the browser uses TLS.
        root: the relative prefix of links on this page, which works under any proxy path.
        began: the time in seconds when the request came, before anything was read for its page.
    """

    def __init__(self, visits: Sessions, request: Request) -> None:
        self.began = own_time()
        self._visits = visits
        self._sent = sent_cookie(request)
        self._path = outer_path(request)
        self.is_secure = SECURE in (request.url.scheme, request.headers.get("x-forwarded-proto"))
        self._address = request.client.host if request.client else None
        self.id = self._sent if 20 <= len(self._sent) <= 100 else secrets.token_urlsafe(32)
        self.session = visits.session(self.id)
        if self.session and time.monotonic() - self.session.since > ROTATE_SECONDS:
            self.id = visits.rotate(self.id, self.session)
        self.engine = self.engine_with(self.session.key if self.session else None)
        self.root = relative_root(request)
        self.is_known = bool(self._sent)

    @property
    def token(self) -> str:
        return self._visits.token(self.session.seed if self.session else self.id)

    @property
    def right(self) -> str:
        """The right of this visitor: without keys, everybody has all rights."""
        return self.session.right if self.session else "admin"

    def engine_with(self, key: str | None) -> EngineClient:
        """Return a client that sends this key, with the address of the visitor."""
        transport = ASGITransport(self._visits.engine, self._address)
        return EngineClient("http://localhost", key, transport=transport, agent="web")

    def stream(self, target: str, headers: Mapping[str, str]) -> Response:
        """Return the engine's response to a GET request as a stream, with these headers in place of its own."""
        key = {"Authorization": f"Bearer {self.session.key}"} if self.session else {}
        asked = asgi_scope(Outgoing("GET", f"{PREFIX}/{target}", {"User-Agent": USER_AGENT, **key}))
        return Streamed(self._visits.engine, {**asked, "client": (self._address, 0)}, headers)

    def check(self, token: object) -> None:
        """Refuse a form from another site.

        Raises:
            ForeignOrigin: the token does not belong to this visit.
        """
        if not (isinstance(token, str) and hmac.compare_digest(token.encode(), self.token.encode())):
            raise ForeignOrigin("This form is out of date. Reload the page, then submit the form again.")

    async def form(self, request: Request, *, field: int = MAX_FIELD, files: int = 0) -> FormData:
        """Return the submitted form, if it is from kb; read it only for visitors with access to the engine.

        Args:
            field: the maximum size of a field in bytes.
            files: the maximum number of files.

        Raises:
            ForeignOrigin: the form is from another site.
            Unauthorized: a key is needed.
            Invalid: it exceeds a limit.
        """
        await self.require()
        return await self.open_form(request, field=field, files=files)

    async def require(self) -> None:
        """Refuse a visitor without access to the engine.

        Raises:
            Unauthorized: a key is needed.
        """
        await self.engine.jobs(limit=1)

    async def require_writing(self) -> None:
        """Refuse a visitor whose key may not change anything, before the visitor fills in a form.

        Raises:
            Unauthorized: a key is needed.
            Forbidden: the key may only read.
        """
        await self.require()
        if self.right == "read":
            raise Forbidden("This key may only read. To change documents, sign in with another key.")

    async def open_form(self, request: Request, *, field: int = MAX_FIELD, files: int = 0) -> FormData:
        """Return a form without requiring a key. Raises `ForeignOrigin` and `Invalid` like `form`."""
        token = request.headers.get("x-kb-token")
        if token is not None:
            self.check(token)
        check = self.check if token is None else lambda _: None
        return await read_form(request, check, fields=OTHER_FIELDS + MAX_TAGS, field=field, files=files)

    def leave_notice(self, notice: Notice) -> None:
        self._visits.leave_notice(self.id, notice)

    def take_notice(self) -> Notice | None:
        return self._visits.take_notice(self.id)

    def sign_in(self, key: str, right: str) -> None:
        """Start a session with a new id, for a key with this right."""
        self.sign_out()
        self.session = Session(key, right, secrets.token_urlsafe(16))
        self.id = self._visits.add(self.session)
        self.engine = self.engine_with(key)

    def change_key(self, key: str) -> None:
        if self.session:
            self.session.key = key
            self.engine = self.engine_with(key)

    def sign_out(self) -> None:
        self._visits.end(self.id)
        self.session, self.id = None, secrets.token_urlsafe(32)

    def send_cookie(self, response: Response) -> None:
        if self.id != self._sent:
            response.set_cookie(
                COOKIE, self.id, DAYS * 86400, path=self._path, secure=self.is_secure, httponly=True, samesite="strict"
            )


class Streamed(Response):
    """A response of an app, streamed without being kept in memory."""

    def __init__(self, app: ASGIApp, asked: Scope, headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self._app, self._asked = app, asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the response of the app."""

        async def pass_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in self.raw_headers} - {b"content-length"}
                headers = [header for header in message["headers"] if header[0] not in own]
                added = [header for header in self.raw_headers if header[0] in own]
                message = {**message, "headers": headers + added}
            await send(message)

        await self._app(self._asked, receive, pass_on)


class Sessions:
    """The sessions of visitors who have signed in. They are kept only in memory, so that no key is written to disk.

    Args:
        engine: the engine's app.
    """

    def __init__(self, engine: ASGIApp) -> None:
        self.engine = engine
        self._secret = secrets.token_bytes(32)
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._former: OrderedDict[bytes, tuple[float, Session]] = OrderedDict()
        self._notices: OrderedDict[bytes, Notice] = OrderedDict()

    def of(self, request: Request) -> Visit:
        return Visit(self, request)

    def session(self, visit_id: str) -> Session | None:
        digest = _digest(visit_id)
        session = self._sessions.get(digest)
        if session is None:
            until, session = self._former.get(digest, (0, None))
            return session if until > time.monotonic() else None
        if session.until < time.monotonic():
            del self._sessions[digest]
            return None
        return session

    def add(self, session: Session) -> str:
        """Store a session; return its id."""
        visit_id = secrets.token_urlsafe(32)
        self._sessions[_digest(visit_id)] = session
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return visit_id

    def rotate(self, visit_id: str, session: Session) -> str:
        """Give a session a new id, and return it; the previous id stays valid briefly."""
        self._sessions.pop(_digest(visit_id), None)
        self._former[_digest(visit_id)] = (time.monotonic() + LATE_SECONDS, session)
        if len(self._former) > MAX_SESSIONS:
            self._former.popitem(last=False)
        session.since = time.monotonic()
        return self.add(session)

    def leave_notice(self, visit_id: str, notice: Notice) -> None:
        self._notices[_digest(visit_id)] = notice
        if len(self._notices) > MAX_SESSIONS:
            self._notices.popitem(last=False)

    def take_notice(self, visit_id: str) -> Notice | None:
        return self._notices.pop(_digest(visit_id), None)

    def end(self, visit_id: str) -> None:
        session = self._sessions.pop(_digest(visit_id), None)
        for digest in [digest for digest, (_, former) in self._former.items() if former is session]:
            del self._former[digest]

    def token(self, seed: str) -> str:
        return hmac.new(self._secret, seed.encode(), sha256).hexdigest()


def sent_cookie(request: Request) -> str:
    """Return the id that the browser sent: the first one, which has the longest path, if kb runs under several."""
    pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def relative_root(request: Request) -> str:
    """Return the relative path from a page to the root, counted in the path that the browser sees."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    depth = path.partition(b"?")[0].count(b"/") - 1
    return "../" * depth or "./"


def _digest(visit_id: str) -> bytes:
    return sha256(visit_id.encode()).digest()
