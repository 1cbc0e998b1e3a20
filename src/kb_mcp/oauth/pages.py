"""The page on which a person gives a program access, with a key of kb."""

import hmac
import secrets
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse

from kb.api.errors import Forbidden
from kb.asgi.security_headers import POLICY
from kb_mcp.oauth.clients import LOOPBACK, Client
from kb_mcp.tools.invisible_characters import shown

FIELDS: Final = (
    "response_type",
    "client_id",
    "redirect_uri",
    "code_challenge",
    "code_challenge_method",
    "state",
    "scope",
    "resource",
)
"""The parameters of a request for authorization, which the form repeats."""

COOKIE: Final = "kb_consent"
COOKIE_SECONDS: Final = 1800
MEANINGS: Final = {
    "read": "search and read your documents",
    "write": "add, change and delete documents",
    "offline_access": "stay connected until you disconnect it",
}
NOT_THE_PAGE: Final = (
    "This form does not come from a page that kb showed in this browser. Go back to the program, and connect again."
)


def consent_page(
    request: Request, client: Client, asked: Mapping[str, str], scopes: list[str], *, is_secure: bool, wrong: str = ""
) -> HTMLResponse:
    """Return the page that says who asks for what, and asks for a key."""
    name = escape(shown(client.shown_name))
    seed = request.cookies.get(COOKIE) or secrets.token_urlsafe(32)
    hidden = {**asked, "form_token": form_token(seed, asked)}
    inputs = "".join(
        f'<input type="hidden" name="{escape(field)}" value="{escape(value)}">' for field, value in hidden.items()
    )
    body = (
        f"<h1>{name} wants to use your knowledge base</h1>"
        f"{f'<p class=wrong role=alert>{escape(wrong)}</p>' if wrong else ''}"
        f"<p>It asks to {escape(_joined([MEANINGS[scope] for scope in scopes]))}. It never gets more than the key that"
        " you enter allows.</p>"
        f"<dl><dt>Program</dt><dd>{_identity(client)}</dd><dt>Your answer goes to</dt>"
        f"<dd>{escape(_place(asked['redirect_uri']))}</dd></dl>"
        f'<form method="post" action="authorize">{inputs}'
        '<label>Key <input type="password" name="key" autocomplete="current-password" autofocus></label>'
        '<button class="allow" name="decision" value="allow">Allow</button>'
        '<button name="decision" value="deny">Refuse</button></form>'
        "<p>Enter a key of this knowledge base, for example one that you made for this program with"
        " <code>kb keys make</code>. The program never sees the key. You can disconnect the program under"
        " <em>Keys</em>, or with <code>kb keys</code>. If you didn't ask for this, close the page.</p>"
    )
    response = page(f"Connect {name}", body, 401 if wrong else 200, forms=_form_target(asked["redirect_uri"]))
    response.set_cookie(
        COOKIE, seed, max_age=COOKIE_SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
    return response


def refusal_page(reason: str, status: int = 400) -> HTMLResponse:
    """Return the page for a request that cannot be sent back to the program, because it may be forged."""
    return page("Not connected", f"<h1>Not connected</h1><p>{escape(reason)}</p>", status)


def page(title: str, body: str, status: int, forms: str = "") -> HTMLResponse:
    """Return a page that no other site can frame, and that loads nothing.

    Args:
        title: as HTML.
        body: as HTML.
        status: its status.
        forms: a target that answers of its form may lead to, besides this server.
    """
    template, style = _template()
    policy = (
        f"default-src 'none'; style-src 'sha256-{style}'; form-action 'self' {forms}; base-uri 'none';"
        " frame-ancestors 'none'"
    )
    headers = {
        POLICY: policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",  # with no-referrer, browsers send the form with the origin null
        "Cache-Control": "no-store",
    }
    return HTMLResponse(template.substitute(title=title, body=body), status, headers)


def check_form(request: Request, asked: Mapping[str, str], token: str, origin: str) -> None:
    """Refuse a form that is not from a page of ours, for this request and in this browser.

    Raises:
        Forbidden: it is not.
    """
    seed = request.cookies.get(COOKIE, "")
    is_ours = bool(seed) and hmac.compare_digest(form_token(seed, asked).encode(), token.encode(errors="replace"))
    is_same = request.headers.get("origin", origin) == origin
    if not is_ours or not is_same or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Forbidden(NOT_THE_PAGE)


def form_token(seed: str, asked: Mapping[str, str]) -> str:
    """Return the token of the form for one request, which only this server can make for the cookie with this seed."""
    return sha256(f"{seed}\n{urlencode(sorted(asked.items()))}".encode(errors="replace")).hexdigest()


@cache
def _template() -> tuple[Template, str]:
    """Return the template, and the digest of its style for the policy."""
    text = files("kb_mcp.oauth").joinpath("consent.html").read_text("utf-8")
    style = text.partition("<style>")[2].partition("</style>")[0]
    return Template(text), b64encode(sha256(style.encode()).digest()).decode()


def _identity(client: Client) -> str:
    if client.is_known:
        return f"described by {escape(urlsplit(client.client_id).hostname or '')}"
    return f"calls itself “{escape(shown(client.shown_name))}”. kb cannot check this name."


def _place(callback: str) -> str:
    parts = urlsplit(callback)
    if parts.hostname in LOOPBACK and parts.scheme == "http":
        return f"a program on this device ({parts.netloc})"
    return parts.netloc if parts.scheme == "https" else f"the app for {parts.scheme}: addresses on this device"


def _form_target(callback: str) -> str:
    """Return the target for the policy: Chrome also checks where the answer of a form leads."""
    parts = urlsplit(callback)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme == "https" else f"{parts.scheme}:"


def _joined(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
