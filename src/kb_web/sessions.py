"""Sessions of visitors, and the tokens that protect forms against other sites."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.api.errors import Forbidden, ForeignOrigin, KbError
from kb.api.limits import MAX_TAGS
from kb.api.rights import ON_BEHALF_OF
from kb.api.version_check import USER_AGENT
from kb.asgi.body_limits import MAX_FIELD
from kb.asgi.hosts import outer_path
from kb.asgi.proxy_sign_in import ByProxy
from kb.client.asgi import ASGITransport, asgi_scope
from kb.client.client import PREFIX, EngineClient
from kb.client.transport import Outgoing
from kb.clock import own_time
from kb_web.forms import OTHER_FIELDS, read_form
from kb_web.session_file import DAYS, FILE, MAX_SESSIONS, Session, SessionFile, digest_of

COOKIE: Final = "kb_session"
ROTATE_SECONDS: Final = 12 * 3600
LATE_SECONDS: Final = 60
"""How long a previous session id remains valid, for requests that were in progress during the change."""

SECURE: Final = "https"


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
        self._right = "read"
        self._sent = sent_cookie(request)
        self._path = outer_path(request)
        self.is_secure = SECURE in (request.url.scheme, request.headers.get("x-forwarded-proto"))
        self._address = request.client.host if request.client else None
        self.id = self._sent if 20 <= len(self._sent) <= 100 else secrets.token_urlsafe(32)
        self.person = visits.by_proxy.sign_in.name_in(request.scope) if visits.by_proxy else None
        self.session = visits.session(self.id) if self.person is None else None
        if self.session and time.time() - self.session.since > ROTATE_SECONDS:
            self.change_id(self.session)
        self.engine = self._engine(self._access())
        self.root = relative_root(request)
        self.is_known = bool(self._sent)

    @property
    def token(self) -> str:
        return hmac.new((self.session.seed if self.session else self.id).encode(), b"form", sha256).hexdigest()

    @property
    def right(self) -> str:
        """The right of this visitor: without keys, everybody has all rights."""
        if self.person is not None:
            return self._right
        return self.session.right if self.session else "admin"

    async def recognise(self) -> None:
        """Learn the right of a person whom the proxy names.

        Raises:
            Forbidden: the key of this name does not exist.
        """
        if self.person is not None:
            self._right = (await self.engine.own_rights())["right"]

    def engine_with(self, key: str | None) -> EngineClient:
        """Return a client that sends this key, with the address of the visitor."""
        return self._engine({"Authorization": f"Bearer {key}"} if key else {})

    def _engine(self, access: dict[str, str]) -> EngineClient:
        transport = ASGITransport(self._visits.engine, self._address)
        return EngineClient("http://localhost", transport=transport, around=lambda *_: nullcontext(access), agent="web")

    def _access(self) -> dict[str, str]:
        """Return the headers with which this visitor asks the engine."""
        if self.person is not None and self._visits.by_proxy:
            return {"Authorization": f"Bearer {self._visits.by_proxy.key()}", ON_BEHALF_OF: self.person}
        return {"Authorization": f"Bearer {self.session.key}"} if self.session else {}

    def stream(self, target: str, headers: Mapping[str, str]) -> Response:
        """Return the engine's response to a GET request as a stream, with these headers in place of its own."""
        asked = asgi_scope(Outgoing("GET", f"{PREFIX}/{target}", {"User-Agent": USER_AGENT, **self._access()}))
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

    async def has_access(self) -> bool:
        """Whether the visitor has access to the engine now."""
        try:
            await self.require()
        except KbError:
            return False
        return True

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
        is_own_page = request.headers.get("sec-fetch-site") == "same-origin"  # so that what a person wrote is not lost
        check = self.check if token is None and not is_own_page else lambda _: None
        form = await read_form(request, check, fields=OTHER_FIELDS + MAX_TAGS, field=field, files=files)
        request.state.posted = form
        self.check(token if token is not None else form.get("token"))
        return form

    def leave_notice(self, notice: Notice) -> None:
        self._visits.leave_notice(self.id, notice)

    def take_notice(self) -> Notice | None:
        return self._visits.take_notice(self.id)

    def sign_in(self, key: str, right: str) -> None:
        """Start a session with a new id, for a key with this right."""
        self.sign_out()
        now = time.time()
        self.change_id(Session(key, right, secrets.token_urlsafe(16), now, now + DAYS * 86400))
        self.engine = self.engine_with(key)

    def change_key(self, key: str) -> None:
        if self.session:
            self.change_id(replace(self.session, key=key))
            self.engine = self.engine_with(key)

    def change_id(self, session: Session) -> None:
        """Give the session a new id; the previous one stays valid briefly."""
        self.session = replace(session, since=time.time())
        self.id = self._visits.rotate(self.id, self.session)

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
    """The sessions of visitors who have signed in, and what waits to be said to each visitor.

    Args:
        engine: the engine's app.
        folder: the data folder.
        by_proxy: how visitors sign in by a proxy, if they do.
    """

    def __init__(self, engine: ASGIApp, folder: Path, by_proxy: ByProxy | None = None) -> None:
        self.engine = engine
        self.by_proxy = by_proxy
        self.kept = SessionFile(folder / FILE)
        self._former: OrderedDict[str, tuple[float, Session]] = OrderedDict()
        self._notices: OrderedDict[str, Notice] = OrderedDict()

    def of(self, request: Request) -> Visit:
        return Visit(self, request)

    def session(self, visit_id: str) -> Session | None:
        until, former = self._former.get(digest_of(visit_id), (0, None))
        return self.kept.session(visit_id) or (former if until > time.monotonic() else None)

    def rotate(self, visit_id: str, session: Session) -> str:
        """Keep a session under a new id, and return it; its previous id stays valid briefly."""
        if self.session(visit_id):
            self._former[digest_of(visit_id)] = (time.monotonic() + LATE_SECONDS, session)
            if len(self._former) > MAX_SESSIONS:
                self._former.popitem(last=False)
        new = secrets.token_urlsafe(32)
        self.kept.add(new, session, instead_of=visit_id)
        return new

    def leave_notice(self, visit_id: str, notice: Notice) -> None:
        self._notices[digest_of(visit_id)] = notice
        if len(self._notices) > MAX_SESSIONS:
            self._notices.popitem(last=False)

    def take_notice(self, visit_id: str) -> Notice | None:
        return self._notices.pop(digest_of(visit_id), None)

    def end(self, visit_id: str) -> None:
        session = self.session(visit_id)
        self.kept.end(visit_id)
        if session:
            self._former = OrderedDict(row for row in self._former.items() if row[1][1].seed != session.seed)

    def end_others(self, visit_id: str) -> int:
        """End all other sessions, and return their number."""
        self._former.clear()
        return self.kept.end_others(visit_id)


def sent_cookie(request: Request) -> str:
    """Return the id that the browser sent: the first one, which has the longest path, if kb runs under several."""
    pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def relative_root(request: Request) -> str:
    """Return the relative path from a page to the root, counted in the path that the browser sees."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    depth = path.partition(b"?")[0].count(b"/") - 1
    return "../" * depth or "./"
