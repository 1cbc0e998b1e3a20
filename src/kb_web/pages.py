"""Render templates, and handle errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from markupsafe import Markup, escape
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kb.api.errors import ForeignOrigin, Invalid, KbError, TooManyGuesses, Unauthorized
from kb.api.file_types import KINDS
from kb.api.limits import MAX_TAGS
from kb.api.omissions import phrase
from kb.asgi.error_replies import on_http_exception, on_kb_error
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.document_html import Row, plain
from kb_web.forms import OTHER_FIELDS, read_form
from kb_web.sessions import Visit

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC: Final = Path(__file__).parent / "static"
WITHIN: Final = re.compile(r"[a-z0-9][A-Za-z0-9/_-]*(\?[^\x00-\x20\\]*)?|\?[^\x00-\x20\\]*|")
"""A page of kb, relative to the root."""

THEME: Final = "kb_theme"
"""The cookie with the theme that was chosen for a browser."""

THEMES: Final = ("light", "dark")
ZONE: Final = "kb_zone"
"""The cookie with the minutes by which the reader's clock is ahead of UTC, which a script sets."""

LONGEST_KEPT: Final = 8 << 20
"""Maximum size in bytes of a field that is kept while its writer signs in; the form has its own limit."""

LANGUAGE_CODE: Final = re.compile("[a-z]{2}")
TYPE_NAMES: Final = {
    "code": "Source code", "csv": "Table (CSV)", "docx": "Word", "eml": "Mail", "enex": "Evernote",
    "epub": "E-book", "html": "Web page", "ics": "Calendar", "image": "Picture", "json": "JSON", "markdown": "Markdown",
    "mbox": "Mailbox", "mht": "Saved web page", "msg": "Mail (Outlook)", "note": "Note", "notebook": "Notebook",
    "odp": "Slides (ODF)", "ods": "Spreadsheet (ODF)", "odt": "Text (ODF)", "pdf": "PDF", "pptx": "PowerPoint",
    "rtf": "RTF", "text": "Text", "tnef": "Mail (winmail.dat)", "vcf": "Contacts", "xls": "Excel (XLS)",
    "xlsx": "Excel", "xml": "XML",
}  # fmt: skip
KIND_NAMES: Final = {
    "notes": "Notes", "pdfs": "PDFs", "pictures": "Pictures", "mails": "Mails", "spreadsheets": "Spreadsheets",
    "slides": "Slides", "webpages": "Web pages", "texts": "Text documents", "sources": "Code and data",
    "calendars": "Calendars", "contacts": "Contacts", "books": "Books",
}  # fmt: skip
KIND_OF: Final = {doc_type: kind for kind, types in KINDS.items() for doc_type in types}
TITLES: Final = {
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed",
    409: "Not possible now",
    410: "No longer available",
    413: "Too large",
    415: "Invalid request",
    421: "Host name not allowed",
    422: "Invalid request",
    503: "Not available now",
    507: "Disk full",
}
"""Titles of error pages by status; the other statuses have clear names of their own."""


@cache
def assets() -> str:
    """Return a hash of the stylesheet and scripts, which browsers cache forever."""
    files = sorted(file for file in STATIC.rglob("*") if file.is_file())
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def render(request: Request, template: str, status_code: int = 200, **context: object) -> Response:
    visit: Visit = request.state.visit
    is_fragment = "x-kb-fragment" in request.headers
    about = {
        "root": visit.root,
        "token": visit.token,
        "theme": chosen if (chosen := request.cookies.get(THEME)) in THEMES else "",
        "is_signed_in": visit.session is not None,
        "right": visit.right,
        "may_write": visit.right != "read",
        "may_manage": visit.right == "admin",
        "here": request.url.path,
        "back_to": place_of(request),
        "seen": f"{visit.began:.3f}",
        "is_fragment": is_fragment,
        "notice": None if is_fragment else visit.take_notice(),
    }
    text = templates().get_template(template).render(about | context)
    return HTMLResponse(text, status_code, PAGE_HEADERS)


@cache
def templates() -> Environment:
    """Return the templates, loaded on first use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("kb_web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters = (moment, own_date, broken, size, kind, icon_of, count, plain, milliseconds, line_path, waiting)
    environment.filters |= {function.__name__: function for function in filters} | {"when": when, "omitted": phrase}
    environment.globals |= {"assets": assets(), "types": TYPE_NAMES}
    return environment


def later_page(page: Row, *parameters: tuple[str, str]) -> str | None:
    """Return the URL of the next page of a list, with its other parameters; None at the end."""
    return page["next_cursor"] and "?" + urlencode([*parameters, ("cursor", page["next_cursor"])])


def redirect(visit: Visit, place: str) -> Response:
    return RedirectResponse(visit.root + place, HTTPStatus.SEE_OTHER, PAGE_HEADERS)


def is_script(request: Request) -> bool:
    """Whether a script of a page asks, which wants JSON; anything else that accepts it too gets a page."""
    return request.headers.get("accept") == "application/json"


async def on_error(request: Request, error: Exception) -> Response:
    """Handle an exception: return a page for browsers, a problem response for programs."""
    if "text/html" not in request.headers.get("accept", ""):
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
            error = HTTPException(404, f"Nothing is served at {request.url.path}.")
        return await (on_kb_error if isinstance(error, KbError) else on_http_exception)(request, error)
    visit: Visit = request.app.state.visits.of(request)
    request.state.visit = visit
    if isinstance(error, Unauthorized):
        response = await sign_in_first(request)
    elif isinstance(error, ForeignOrigin) and (kept := await kept_form(request)):
        response = render(request, "send_again.html", error.status, place=place_of(request), kept=kept, is_stale=True)
    else:
        status, title, detail = described(error)
        response = render(request, "error.html", status, title=title, detail=detail, status=status)
    visit.send_cookie(response)
    return response


async def sign_in_first(request: Request) -> Response:
    """Ask for the key, and then return to the requested page, or to the form that was sent."""
    kept = await kept_form(request)
    place = place_of(request) if kept or request.method == "GET" else ""
    return render(request, "sign_in.html", HTTPStatus.UNAUTHORIZED, place=place, kept=kept, wrong=None)


def place_of(request: Request) -> str:
    return request.url.path.lstrip("/") + (f"?{request.url.query}" if request.url.query else "")


async def kept_form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form that one of our pages sent and kb did not accept, so that the page can show them."""
    if request.method != "POST" or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return []
    form = getattr(request.state, "posted", None)
    if form is None:
        with suppress(Invalid, ClientDisconnect, RuntimeError):  # not a form, or one with files, or read in part
            form = await read_form(request, lambda _: None, fields=OTHER_FIELDS + MAX_TAGS, field=LONGEST_KEPT)
    return [(name, str(value)) for name, value in (form.multi_items() if form else ()) if name != "token"]


def described(error: Exception) -> tuple[int, str, str]:
    """Return the status, title and description of an error."""
    if isinstance(error, HTTPException):
        if error.status_code == HTTPStatus.NOT_FOUND:
            return 404, "Page not found", "Check the address. The page may also have been removed."
        return error.status_code, title_of(error.status_code), str(error.detail)
    if not isinstance(error, KbError):
        return 500, "Something went wrong", "The engine could not answer this request. Its log shows the cause."
    title = "Too many wrong keys" if isinstance(error, TooManyGuesses) else title_of(error.status)
    return error.status, title, error.detail


def title_of(status: int) -> str:
    return TITLES.get(status) or HTTPStatus(status).phrase


def when(text: str | None, now: datetime | None = None) -> str:
    """Return the age of a time in words, or its date."""
    if not text:
        return ""
    then, now = datetime.fromisoformat(text), now or datetime.now(UTC)
    minutes = int((now - then).total_seconds() // 60)
    if minutes < 1:
        return "just now"
    for unit, length, most in (("minute", 1, 60), ("hour", 60, 24 * 60), ("day", 24 * 60, 7 * 24 * 60)):
        if minutes < most:
            number = minutes // length
            return f"{number} {unit}{'s' * (number > 1)} ago"
    return f"{then.day} {then:%b %Y}"


def own_date(text: str) -> str:
    """Return the date of a document in words: `27 Feb 2023`, `Feb 2023` or `2023`."""
    if not re.fullmatch(r"\d{4}(-\d\d(-\d\d.*)?)?", text):
        return plain(text, 40)
    try:
        day = date.fromisoformat(f"{text}-01-01"[:10] if len(text) <= len("2023-02") else text[:10])
    except ValueError:
        return plain(text, 40)
    return f"{day.day} {day:%b %Y}" if len(text) > len("2023-02") else f"{day:%b %Y}" if "-" in text else text


def broken(path: str) -> Markup:
    """Return a path that can break after slashes and underscores."""
    return Markup("<wbr>").join(map(escape, re.split("(?<=[/_])", path)))


def zone_of(request: Request) -> timezone:
    """Return the reader's time zone; UTC without the script that says it."""
    minutes = request.cookies.get(ZONE, "")
    is_known = re.fullmatch(r"-?\d{1,3}", minutes)
    return timezone(timedelta(minutes=int(minutes))) if is_known else UTC


def moment(text: str | None) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC" if text else ""


def size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def language_asked(params: QueryParams) -> str:
    """Return the requested language; empty if the code is invalid."""
    code = params.get("lang", "").lower()
    return code if LANGUAGE_CODE.fullmatch(code) else ""


def name_pattern(name: str) -> str:
    """Return the pattern of a typed file name: without wildcards, a part of a name is enough."""
    name = name.strip()
    return f"*{name}*" if name and not {"*", "?"} & {*name} else name


def path_asked(params: QueryParams) -> str:
    """Return the requested beginning of paths, also if it was typed as in Windows, with a star, or from `.`."""
    path = params.get("path", "").removeprefix("./").removesuffix("*")
    return path if "/" in path else path.replace("\\", "/")


def day_asked(params: QueryParams, name: str) -> str:
    """Return the requested day; empty if it is none."""
    try:
        return date.fromisoformat(params.get(name, "")).isoformat()
    except ValueError:
        return ""


def midnight(day: str, zone: tzinfo) -> str | None:
    """Return the beginning of a day in a time zone, or None if there is no day."""
    return datetime.combine(date.fromisoformat(day), time.min, zone).isoformat() if day else None


def kind(doc_type: str) -> str:
    return TYPE_NAMES.get(doc_type) or KIND_NAMES.get(doc_type, doc_type)


def icon_of(doc_type: str) -> str:
    """Return the kind of a type, which names its icon."""
    return KIND_OF.get(doc_type, "texts")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def waiting(status: Row) -> int:
    """Return the number of files that kb has still to read."""
    folder = status["notes_folder"] or {"to_read": 0}
    return int(status["queue"]["queued"] + status["queue"]["running"] + folder["to_read"])


def milliseconds(number: float) -> str:
    return f"{number / 1000:.1f} s" if number >= 1000 else f"{number:.0f} ms" if number >= 10 else f"{number:.1f} ms"


def line_path(values: Sequence[float | None], width: float, most: float, height: int) -> str:
    """Return an SVG path through evenly spaced values, with gaps at missing values."""
    step, parts = width / max(1, len(values)), []
    for index, (before, value, after) in enumerate(zip([None, *values], values, [*values[1:], None], strict=False)):
        if value is None:
            continue
        x, y = round((index + 0.5) * step, 1), round(height - 6 - value / most * (height - 26), 1)
        is_alone = before is None and after is None
        parts.append(f"M{x} {y}m-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0" if is_alone else f"{'ML'[before is not None]}{x} {y}")
    return "".join(parts)
