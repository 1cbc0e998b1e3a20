"""Backups, what the doctor finds, and the keys: for those who may do anything."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import AtWork, Invalid
from kb.web.document_html import Row
from kb.web.pages import redirect, render
from kb.web.sessions import Visit


async def backups(request: Request, visit: Visit) -> Response:
    """The backups; a form makes one, or has all of them verified."""
    if request.method == "POST":
        return await begin(request, visit, ("back-up", "verify"))
    state, tasks, running = await maintenance_state(visit)
    made, verified = tasks.get("back-up"), tasks.get("verify")
    return render(request, "backups.html", state=state, made=made, verified=verified, running=running)


async def doctor(request: Request, visit: Visit) -> Response:
    """What was found when the data were last examined; a form has it done again, or mends."""
    if request.method == "POST":
        return await begin(request, visit, ("examine", "mend"))
    _, tasks, running = await maintenance_state(visit)
    last = max(filter(None, map(tasks.get, ("examine", "mend"))), key=lambda task: task["begun_at"], default=None)
    findings = last["findings"] if last else []
    faulty = [finding for finding in findings if finding["faults"]]
    return render(
        request,
        "doctor.html",
        last=last,
        running=running,
        wrong=[finding for finding in faulty if not finding["is_notice"]],
        noted=[finding for finding in faulty if finding["is_notice"]],
        well=[finding["check"] for finding in findings if not finding["faults"]],
    )


async def begin(request: Request, visit: Visit, actions: tuple[str, ...]) -> Response:
    """Begin one of these; if something is done already, that is seen on the page."""
    form = await visit.form(request)
    action = str(form.get("action", ""))
    if action not in actions:
        raise Invalid(f"action: {' or '.join(actions)} can be begun here.")
    with suppress(AtWork):
        await visit.engine.maintain(action)
    return redirect(visit, request.url.path.lstrip("/"))


async def maintenance_state(visit: Visit) -> tuple[Row, dict[str, Row], Row | None]:
    """Return what the engine says of its data, the last task of each kind, and the one that runs."""
    state = await visit.engine.maintenance()
    running = next((task for task in state["tasks"] if not task["ended_at"]), None)
    return state, {task["action"]: task for task in state["tasks"]}, running


async def keys(request: Request, visit: Visit) -> Response:
    """The keys with rights, and when each was used last."""
    reply, own = await asyncio.gather(visit.engine.keys(), visit.engine.own_rights())
    return render(request, "keys.html", keys=reply["keys"], own=own)
