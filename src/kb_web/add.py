"""Add files and show their progress."""

from http import HTTPStatus
from typing import Final

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kb.api.errors import KbError
from kb.api.tag_tree import split_tags
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.document_html import Row
from kb_web.pages import later_page, redirect, render
from kb_web.rows import job_row
from kb_web.sessions import Visit

PAGE: Final = 50
MAX_FILES: Final = 1000
STATES: Final = ("queued", "running", "failed", "done")


async def add(request: Request, visit: Visit) -> Response:
    """Add files: one per request of the script, or all files of a form."""
    if request.method != "POST":
        await visit.require_writing()
        return render(request, "add.html", refused=[])
    form = await visit.form(request, files=MAX_FILES)
    tags = split_tags(str(form.get("tags", "")))
    files = [file for file in form.getlist("file") if isinstance(file, UploadFile) and file.filename]
    path = str(form.get("source_path", "")) or None
    accepted: list[Row] = []
    refused: list[Row] = []
    for file in files:
        name = file.filename or "file"
        try:
            job = await visit.engine.add_file(name, file.file, tags=tags, source_path=path)
            accepted.append({"id": job["job_id"], "status": job["status"], "name": name})
        except KbError as error:
            refused.append(
                {"name": name, "error": error.detail, "again": error.status >= HTTPStatus.INTERNAL_SERVER_ERROR}
            )
    await form.close()
    if "x-kb-token" in request.headers:
        return JSONResponse((accepted or refused or [{"error": "No file was sent."}])[0], headers=PAGE_HEADERS)
    if refused or not accepted:
        return render(request, "add.html", 422, refused=refused or [{"name": "", "error": "Choose a file first."}])
    return redirect(visit, "jobs")


async def jobs(request: Request, visit: Visit) -> Response:
    """Show the added files, newest first."""
    status = request.query_params.get("status")
    status = status if status in STATES else None
    page = await visit.engine.jobs(status=status, limit=PAGE, cursor=request.query_params.get("cursor") or None)
    filters = [("status", status)] if status else []
    queue = (await visit.engine.status())["queue"]
    return render(
        request,
        "jobs.html",
        jobs=[job_row(job) for job in page["jobs"]],
        later=later_page(page, *filters),
        states={state: queue[state] for state in STATES},
        state=status,
    )


async def job(request: Request, visit: Visit) -> Response:
    """Return the progress of a file, for the script."""
    details = job_row(await visit.engine.job(request.path_params["id"]))
    fields = ("id", "status", "progress", "error", "remedy", "document_id", "existed")
    return JSONResponse({name: details[name] for name in fields}, headers=PAGE_HEADERS)


async def retry(request: Request, visit: Visit) -> Response:
    await visit.form(request)
    await visit.engine.retry_job(request.path_params["id"])
    return redirect(visit, "jobs")


async def drop(request: Request, visit: Visit) -> Response:
    await visit.form(request)
    await visit.engine.drop_job(request.path_params["id"])
    return redirect(visit, "jobs")
