"""Sign in and out, and describe the web interface to browsers and systems."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kb.api.errors import TooManyGuesses, Unauthorized
from kb.asgi.hosts import outer_address, outer_path
from kb_web.pages import LONGEST_KEPT, STATIC, WITHIN, count, is_script, redirect, render
from kb_web.sessions import Notice, Visit

KEPT: Final = "kept:"
"""The beginning of the names of fields that belong to the form a visitor sent before signing in."""


async def sign_in(request: Request, visit: Visit) -> Response:
    if request.method != "POST":
        if is_script(request):  # an open page, whose session has ended
            return JSONResponse({"token": visit.token, "is_signed_in": visit.session is not None})
        return render(request, "sign_in.html", place="", kept=(), wrong=None)
    form = await visit.open_form(request, field=LONGEST_KEPT)
    key, place = str(form.get("key", "")).strip(), str(form.get("place", ""))
    place = place if WITHIN.fullmatch(place) else ""
    kept = [(name.removeprefix(KEPT), str(value)) for name, value in form.multi_items() if name.startswith(KEPT)]
    try:
        rights = await visit.engine_with(key if key.isascii() and key.isprintable() else "?").own_rights()
    except Unauthorized:
        wrong = "This key is not valid here. Check it and try again."
    except TooManyGuesses as error:
        wrong = error.detail
    else:
        visit.sign_in(key, rights["right"])
        return (
            render(request, "send_again.html", place=place, kept=kept, is_stale=False)
            if kept
            else redirect(visit, place)
        )
    return render(request, "sign_in.html", HTTPStatus.UNAUTHORIZED, place=place, kept=kept, wrong=wrong)


async def sign_out(request: Request, visit: Visit) -> Response:
    form = await visit.open_form(request)
    if form.get("others") == "1" and visit.right == "admin":
        number = request.app.state.visits.end_others(visit.id)
        visit.leave_notice(Notice(f"Signed out {count(number, 'other browser')}."))
        return redirect(visit, "settings")
    visit.sign_out()
    response = redirect(visit, "sign-in")
    if outer_path(request) == "/":  # drafts, searches and thumbnails; under a path, also data of other apps
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


async def open_link(request: Request, visit: Visit) -> Response:
    """Follow a link such as web+kb:42 or web+kb:words."""
    target = request.query_params.get("u", "").partition(":")[2].strip("/")
    document = re.fullmatch(r"(?:d/)?(\d{1,18})", target)
    return redirect(visit, f"d/{document[1]}" if document else f"?q={quote(target)}")


async def manifest(_: Request, __: Visit) -> Response:
    """Return the manifest that lets a system install the web interface as an app."""
    return Response((STATIC / "manifest.json").read_bytes(), media_type="application/manifest+json")


async def opensearch(request: Request, _: Visit) -> Response:
    """Return the description that lets a browser search kb from the address bar."""
    address = quote(outer_address(request), safe=":/[]")
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
        "<ShortName>kb</ShortName><Description>Search the knowledge base</Description>"
        f'<Url type="text/html" template="{address}/?q={{searchTerms}}"/></OpenSearchDescription>'
    )
    return Response(text, media_type="application/opensearchdescription+xml")
