"""Show and change settings, and make and revoke keys."""

import asyncio
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Forbidden, Invalid, KbError, NotReembedding, SettingError
from kb.api.store_kinds import SETTING, store_kind
from kb.api.tag_tree import split_tags
from kb.asgi.hosts import outer_path
from kb_web.document_html import Row, plain
from kb_web.folder_tree import folder_tree
from kb_web.pages import THEME, THEMES, redirect, render
from kb_web.sessions import Notice, Visit

YEAR: Final = 365 * 86400
LABELS: Final = {
    "KB_OCR": "Languages",
    "KB_INBOX_DIR": "Folder",
    "KB_BACKUP_DIR": "Folder",
    "KB_BACKUP_HOURS": "Hours between backups",
    "KB_BACKUP_KEEP": "Backups to keep",
}
"""The labels of the fields on the page, by variable."""

BACKUPS: Final = {"backup_dir": str, "backup_hours": float, "backup_keep": int}


async def settings(request: Request, visit: Visit) -> Response:
    """Show the settings; a form changes the settings of one section."""
    if request.method != "POST":
        return await show(request, visit)
    form = await visit.form(request)
    section = str(form.get("section", ""))
    try:
        await visit.engine.change_settings(**wanted(section, form))
    except KbError as error:
        return await show(request, visit, error.status, wrong={section: labelled(error.detail)}, sent=dict(form))
    visit.leave_notice(Notice("Saved. kb uses the new settings now."))
    return redirect(visit, f"settings#{section}")


def labelled(reason: str) -> str:
    """Return a reason that begins with a variable with the label of its field instead."""
    return re.sub("^KB_[A-Z_]+(?=: )", lambda name: LABELS.get(name[0], name[0]), reason)


async def show(request: Request, visit: Visit, status: int = HTTPStatus.OK, **about: Any) -> Response:  # noqa: ANN401
    """Show the settings of the browser, and to keys with all rights the settings of the engine."""
    await visit.require()
    try:
        state = await visit.engine.settings()
    except Forbidden:
        return render(request, "settings.html", status, state=None)
    own = {each["name"]: each for each in state["settings"]}
    ocr = own["ocr"]["value"] or "0"
    sent: Row = about.get("sent", {})
    return render(
        request,
        "settings.html",
        status,
        state=state,
        listed=sorted(state["settings"], key=lambda each: each["source"] == "default"),
        own=own,
        values={name: str(sent.get(name, each["value"] or "")) for name, each in own.items()},
        reads_pictures=sent.get("reads") == "1" if sent.get("section") == "ocr" else ocr != "0",
        languages=sent.get("languages", "" if ocr in ("0", "1") else ocr),
        wrong=about.get("wrong", {}),
    )


def wanted(section: str, form: FormData) -> Row:
    """Return the values of a section's form; a field that is disabled is absent, and an empty one restores the default.

    Raises:
        Invalid: the section does not exist, or a value is not a number.
    """
    if section == "ocr":
        reads = form.get("reads") == "1"
        return {"ocr": (str(form.get("languages", "")).strip() or "1") if reads else None}
    if section == "inbox":
        return {"inbox_dir": str(form.get("inbox_dir", "")).strip() or None}
    if section == "backups":
        return {name: number(name, str(form[name]), kind) for name, kind in BACKUPS.items() if name in form}
    raise Invalid("section: must be ocr, inbox or backups.")


def number(name: str, text: str, kind: type) -> object:
    """Return a value of this type; None for an empty text.

    Raises:
        Invalid: it is not a number.
    """
    try:
        value = kind(text.strip()) if text.strip() else None
    except ValueError:
        value = math.inf
    if isinstance(value, float) and not math.isfinite(value):
        raise Invalid(f"KB_{name.upper()}: it must be a {'whole ' if kind is int else ''}number.")
    return value


async def model(request: Request, visit: Visit) -> Response:
    """Show the embedding models and the progress of a change; a form uses another model, or goes back or ends that."""
    if request.method == "POST":
        form = await visit.form(request)
        action = str(form.get("action", ""))
        if action == "stop" and (await visit.engine.reembedding())["state"] == "building":
            action = "rollback"  # it has just been installed
        with suppress(NotReembedding):  # the page shows the state
            await visit.engine.reembed(action, str(form.get("model", "")) or None)
        return redirect(visit, "model")
    state = await visit.engine.reembedding()
    return render(request, "model.html", state=state, models=await visit.engine.models())


async def theme(request: Request, visit: Visit) -> Response:
    form = await visit.open_form(request)
    chosen = str(form.get("theme", ""))
    response = redirect(visit, "settings")
    if chosen in THEMES:
        path = outer_path(request)
        response.set_cookie(THEME, chosen, YEAR, path=path, httponly=True, samesite="strict", secure=visit.is_secure)
    else:
        response.delete_cookie(THEME, path=outer_path(request))
    return response


async def keys(request: Request, visit: Visit) -> Response:
    """List the keys and the programs that use them; forms make, rotate and revoke keys, and disconnect programs."""
    if request.method != "POST":
        return await show_keys(request, visit)
    form = await visit.form(request)
    name = str(form.get("name", "")).strip()
    try:
        made = await act_on_key(visit, str(form.get("act", "")), name, form)
    except KbError as error:
        return await show_keys(request, visit, error.status, wrong=error.detail, sent=dict(form))
    if made:
        return await show_keys(request, visit, made=made)
    return redirect(visit, "keys")


async def act_on_key(visit: Visit, act: str, name: str, form: FormData) -> Row | None:
    """Make, rotate or revoke a key, or disconnect a program; return the new key.

    Raises:
        Invalid: the action does not exist.
    """
    if act == "first":
        made = await visit.engine.make_first_key()
        visit.sign_in(made["key"], "admin")
        return made
    if act == "make":
        tags, path = split_tags(str(form.get("tags", ""))), str(form.get("path", "")).strip() or None
        right, reads_all = str(form.get("right", "")), form.get("reads_all") is not None
        return await visit.engine.make_key(name, right=right, tags=tags, path=path, reads_all=reads_all)
    if act == "rotate":
        is_own = (await visit.engine.own_rights())["name"] == name
        made = await visit.engine.rotate_key(name)
        if is_own:
            visit.change_key(made["key"])
        return made
    if act == "revoke":
        await visit.engine.revoke_key(name)
        visit.leave_notice(Notice(f"Revoked the key “{name}”. kb refuses it from now on."))
        return None
    if act == "end":
        grant = await visit.engine.end_grant(name)
        visit.leave_notice(Notice(f"Disconnected “{grant['client_name']}”. kb refuses it from now on."))
        return None
    raise Invalid("act: must be first, make, rotate, revoke or end.")


async def show_keys(
    request: Request,
    visit: Visit,
    status: int = HTTPStatus.OK,
    wrong: str | None = None,
    made: Row | None = None,
    sent: Row | None = None,
) -> Response:
    """Show the keys with rights, and a key that was just made."""
    engine = visit.engine
    reply, programs, state, top = await asyncio.gather(
        engine.keys(), engine.grants(), engine.settings(), folder_tree(visit, "")
    )
    return render(
        request,
        "keys.html",
        status,
        keys=reply["keys"],
        grants=programs["grants"],
        is_keyed=state["keyed"],
        is_reachable=state["reachable"],
        is_shared=_is_shared(state["settings"]),
        made=made,
        wrong=wrong,
        example=plain(next((folder["prefix"] for folder in top), "papers/"), 80),
        sent={"name": "", "right": "read", "tags": "", "path": "", "reads_all": ""} | (sent or {}),
    )


def _is_shared(settings: Iterable[Row]) -> bool:
    """Return whether several engines may share the database, as with any kind that is not installed here."""
    try:
        return any(each["variable"] == SETTING and store_kind(each["value"]).is_shared for each in settings)
    except SettingError:
        return True
