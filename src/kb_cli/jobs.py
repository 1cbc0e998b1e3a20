"""kb jobs, and waiting for one."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kb_cli import exits, output
from kb_cli.options import Json
from kb_cli.run import ask

if TYPE_CHECKING:
    from kb.contract.client import EngineClient

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
GROWTH = 1.5


def jobs(
    job_id: Annotated[int | None, typer.Argument(metavar="ID", min=1, help="Only this job.")] = None,
    status: Annotated[
        Literal["queued", "running", "done", "failed"] | None, typer.Option(help="Only jobs in this state.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", min=1, help="How many jobs at most.")] = 20,
    json: Json = False,
) -> None:
    """Show what is going in or went in, newest first; with an id, one job and the reason if it failed."""
    if job_id is None:
        answer = ask(lambda engine: engine.jobs(status=status, limit=limit))
    else:
        answer = ask(lambda engine: engine.job(job_id))
    if json:
        output.print_json(answer)
    elif job_id is None:
        show_list(answer["jobs"])
    else:
        show_one(answer)


def show_list(listed: list[dict[str, Any]]) -> None:
    """Print jobs, one a line."""
    output.table(
        ("ID", "STATUS", "DOCUMENT", "CREATED", "WHAT", "ERROR"),
        [
            (
                job["id"],
                progress(job),
                job["document_id"],
                output.local_time(job["created_at"]),
                subject(job),
                job["error"],
            )
            for job in listed
        ],
    )


def show_one(job: dict[str, Any]) -> None:
    """Print a job."""
    output.fields(
        {
            "job": job["id"],
            "status": progress(job),
            "error": job["error"],
            "document": job["document_id"],
            "kind": job["kind"],
            "what": subject(job),
            "source path": job["source_path"],
            "tags": output.tags_of(job),
            "created": output.local_time(job["created_at"]),
            "started": output.local_time(job["started_at"]),
            "finished": output.local_time(job["finished_at"]),
        }
    )


def progress(job: dict[str, Any]) -> str:
    """The job's state, and while it runs how far it is."""
    return f"running {job['progress']:.0%}" if job["status"] == "running" else str(job["status"])


def subject(job: dict[str, Any]) -> str:
    """What a person would call the job."""
    return str(job["title"] or job["filename"] or job["source_path"] or job["kind"])


async def finished(engine: "EngineClient", job_id: int) -> dict[str, Any]:
    """The job when it is done or has failed."""
    import asyncio

    pause = FIRST_PAUSE
    while (job := await engine.job(job_id))["status"] in ("queued", "running"):
        await asyncio.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE)
    return job


def exit_code(job: dict[str, Any]) -> int:
    """What a finished job means to a script."""
    return exits.NOTHING if job["status"] == "failed" else exits.OK
