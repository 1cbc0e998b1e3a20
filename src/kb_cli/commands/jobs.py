"""kb jobs, and waiting for one."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kb.api.errors import NotFound, NotRetryable
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask, ask_at_length
from kb_cli.runtime.options import Json
from kb_cli.runtime.progress import watching
from kb_cli.sync.remote import jobs as all_jobs

if TYPE_CHECKING:
    from kb.client.client import EngineClient

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
GROWTH = 1.5
FOLLOW_SECONDS = 0.2
RETRY = "retry"
ENDED = ("done", "failed")


def jobs(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ID | retry ID", help="Only this job, or those to try again.")
    ] = None,
    status: Annotated[
        Literal["queued", "running", "done", "failed"] | None,
        typer.Option(metavar="STATE", help="Only jobs that are queued, running, done or failed."),
    ] = None,
    limit: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many jobs at most.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show each job as it ends, until none is left.")
    ] = False,
    json: Json = False,
) -> int:
    """Show what is going in and what went in, newest first.

    With an ID, shows one job, and the reason if it failed. 'kb jobs retry ID' tries failed jobs again whose content
    was kept: those that failed because of the engine. With --follow and --json, prints one job a line.
    """
    if words and words[0] == RETRY:
        return retry(numbers(words[1:]), json)
    if words and len(words) > 1:
        raise exits.UsageError("Give one ID, or 'retry' and the IDs.")
    job_id = numbers(words)[0] if words else None
    if follow:
        return ask_at_length(lambda engine: followed(engine, job_id, json))
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
    return exits.OK


def numbers(words: list[str]) -> list[int]:
    """The ids that the words are."""
    if not words or not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise exits.UsageError("A job's ID is a number such as 42.")
    return list(map(int, words))


def retry(ids: list[int], json: bool) -> int:
    """Try failed jobs again; those that cannot be are named."""

    async def work(engine: "EngineClient") -> tuple[list[dict[str, Any]], int]:
        receipts, code = [], exits.OK
        for job_id in ids:
            try:
                receipts.append(await engine.retry_job(job_id))
            except (NotFound, NotRetryable) as error:
                output.complain(error.detail)
                code = exits.code_of(error)
        return receipts, code

    receipts, code = ask(work)
    if json:
        output.print_json(receipts)
    else:
        for receipt in receipts:
            output.say(f"job {receipt['job_id']} is queued again")
    return code


async def followed(engine: "EngineClient", job_id: int | None, json: bool) -> int:
    """Print jobs as they end, and on a terminal how far the others are; answers the exit code."""
    import asyncio

    code = exits.OK
    waiting = {job_id} if job_id is not None else await unfinished(engine)
    with watching(quiet=json) as tell:
        while waiting:
            for each in sorted(waiting):
                job = await engine.job(each)
                if job["status"] in ENDED:
                    waiting.discard(each)
                    told(job, json)
                    code = max(code, exit_code(job))
                elif job["status"] == "running" or len(waiting) == 1:
                    tell(f"{progress(job)}: {subject(job)}; {len(waiting)} to go")
                else:
                    break
            if not waiting and job_id is None:
                waiting = await unfinished(engine)
            await asyncio.sleep(FOLLOW_SECONDS if waiting else 0)
    return code


async def unfinished(engine: "EngineClient") -> set[int]:
    """The jobs that are queued or running."""
    return {job["id"] for status in ("queued", "running") async for job in all_jobs(engine, status)}


def told(job: dict[str, Any], json: bool) -> None:
    """Print a job that has ended."""
    if json:
        output.print_line(job)
    elif job["error"]:
        output.say(f"job {job['id']} failed: {output.one_line(subject(job))}: {job['error']}")
    else:
        output.say(f"job {job['id']} done: {output.one_line(subject(job))} is document {job['document_id']}")


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
