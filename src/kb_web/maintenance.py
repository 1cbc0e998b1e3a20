"""Show backups and check results, for callers with all rights."""

from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from kb.api.errors import Invalid, MaintenanceRunning
from kb_web.document_html import Row
from kb_web.pages import redirect, render
from kb_web.sessions import Visit


async def backups(request: Request, visit: Visit) -> Response:
    """List the backups; a form starts a backup, or a check of all backups."""
    if request.method == "POST":
        return await begin(request, visit, ("back-up", "verify"))
    state, tasks, running = await maintenance_state(visit)
    made, verified = tasks.get("back-up"), tasks.get("verify")
    return render(request, "backups.html", state=state, made=made, verified=verified, running=running)


async def doctor(request: Request, visit: Visit) -> Response:
    """Show the result of the last check; a form starts a new check or a repair."""
    if request.method == "POST":
        return await begin(request, visit, ("check", "repair"))
    _, tasks, running = await maintenance_state(visit)
    last = max(filter(None, map(tasks.get, ("check", "repair"))), key=lambda task: task["begun_at"], default=None)
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
    """Start one of these tasks; if a task is already running, the page shows it."""
    form = await visit.form(request)
    action = str(form.get("action", ""))
    if action not in actions:
        raise Invalid(f"action: must be {' or '.join(actions)}.")
    with suppress(MaintenanceRunning):
        await visit.engine.maintain(action)
    return redirect(visit, request.url.path.lstrip("/"))


async def notes_folder(request: Request, visit: Visit) -> Response:
    """Decide about files that are missing from the notes folder, and show the overview."""
    form = await visit.form(request)
    await visit.engine.decide_about_missing_files(str(form.get("action", "")))
    return redirect(visit, "overview")


async def maintenance_state(visit: Visit) -> tuple[Row, dict[str, Row], Row | None]:
    """Return the engine's maintenance state, the last task of each kind, and the running one."""
    state = await visit.engine.maintenance()
    running = next((task for task in state["tasks"] if not task["ended_at"]), None)
    return state, {task["action"]: task for task in state["tasks"]}, running
