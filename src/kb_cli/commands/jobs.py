"""kb jobs."""

from functools import partial
from typing import Annotated, Any, Literal

from kb.api.errors import NotFound
from kb.api.job_error_phrases import remedy_for
from kb.api.omissions import phrase
from kb.client.client import EngineClient
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.completion import complete_actions
from kb_cli.runtime.engine_call import call, call_async, report_each
from kb_cli.runtime.options import HOW_TO_ADD, Json, argument, option
from kb_cli.runtime.progress import status_line

FOLLOW_SECONDS = 0.2
RETRY = "retry"
DROP = "drop"
DISMISS = "dismiss"
Status = Literal["queued", "running", "done", "failed"]
"""As `kb.api.fields.JobStatus`, whose import takes longer than this command (tests/cli/test_help.py)."""

Words = Annotated[
    list[str] | None,
    argument(
        "ID | retry ID | drop ID | dismiss [ID]",
        "A job's ID, or an action and the IDs of jobs.",
        complete=complete_actions(RETRY, DROP, DISMISS),
    ),
]


def jobs(
    words: Words = None,
    status: Annotated[
        Status | None, option("--status STATE", "Only jobs in this state: queued, running, done or failed.")
    ] = None,
    limit: Annotated[int, option("-n N", "The maximum number of jobs.", min=1)] = 20,
    follow: Annotated[bool, option("--follow -f", "Print each job as it ends, until all have ended.")] = False,
    json: Json = False,
) -> int:
    """Show the jobs that add files and notes, newest first.

    With an ID, kb shows one job and, if it failed, the reason. 'kb jobs retry ID' retries a job that failed because of
    the engine; kb still has its content. 'kb jobs drop ID' removes a job that is not done, with its content, and
    changes no document. 'kb jobs dismiss' removes failed jobs from the list: the ones you name, or all whose file kb
    could not read. kb tries such a file again the next time you send it.

    With --follow and --json, kb prints one job per line.
    """
    if words and words[0] == RETRY:
        return retry(parse_ids(words[1:]), json)
    if words and words[0] == DROP:
        return drop(parse_ids(words[1:]), json)
    if words and words[0] == DISMISS:
        return dismiss(parse_ids(words[1:]) if words[1:] else None, json)
    if words and len(words) > 1:
        raise exit_codes.UsageError(
            "Name one ID, or put 'retry', 'drop' or 'dismiss' before the IDs: 'kb jobs retry 42 43'."
        )
    job_id = parse_ids(words)[0] if words else None
    if follow:
        return call_async(lambda client: follow_jobs(client, job_id, json))
    if job_id is None:
        answer = call(lambda client: client.jobs(status=status, limit=limit))
    else:
        answer = call(lambda client: client.job(job_id))
    if job_id is None:
        none_in_state = "no job has failed" if status == "failed" else f"no job is {status}"
        nothing = none_in_state if status else f"no jobs; {HOW_TO_ADD}"
        output.print_list(answer, "jobs", COLUMNS, nothing, json=json)
    elif json:
        output.print_json(answer)
    else:
        print_job(answer)
    return exit_codes.OK


def parse_ids(words: list[str]) -> list[int]:
    if not words or not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise exit_codes.UsageError("A job's ID is a number such as 42.")
    return list(map(int, words))


def retry(ids: list[int], json: bool) -> int:
    return report_each(
        ids,
        lambda client, job_id: client.retry_job(job_id),
        lambda receipt: f"job {receipt['job_id']} is queued again",
        json=json,
    )


def drop(ids: list[int], json: bool, done: str = " dropped (was {was})") -> int:
    return report_each(
        ids,
        lambda client, job_id: client.drop_job(job_id),
        lambda receipt: f"job {receipt['job_id']}{done.format_map(receipt)}",
        json=json,
    )


def dismiss(ids: list[int] | None, json: bool) -> int:
    """Dismiss failed jobs, without ids all with unreadable content, and return the exit code."""
    failed = {job["id"]: job for job in call(fetch_failed)}
    code = exit_codes.OK
    for job_id in ids or ():
        if job_id not in failed:
            output.print_error(call(partial(why_not_dismissed, job_id=job_id)))
            code = exit_codes.REFUSED
    if ids is None:
        job_ids = [job_id for job_id, job in failed.items() if remedy_for(job["error"]) != "retry"]
    else:
        job_ids = [job_id for job_id in failed if job_id in ids]
    failure = drop(job_ids, json, " dismissed")
    return code or failure


async def why_not_dismissed(client: EngineClient, job_id: int) -> str:
    """Return the reason and the remedy for a job that is not among the failed ones."""
    try:
        job = await client.job(job_id)
    except NotFound as error:
        return error.detail
    if job["status"] == "done":
        return f"Job {job_id} is done. To delete its document, use 'kb delete {job['document_id']}'."
    return f"Job {job_id} has not failed. To remove it anyway, use 'kb jobs drop {job_id}'."


async def fetch_failed(client: EngineClient) -> list[dict[str, Any]]:
    return [job async for job in client.iter_jobs(status="failed")]


async def follow_jobs(client: EngineClient, job_id: int | None, json: bool) -> int:
    """Print jobs when they end, and on a terminal the progress of the others; return the exit code."""
    import asyncio

    from kb.client.client import ENDED

    code = exit_codes.OK
    pending = {job_id} if job_id is not None else await unfinished_jobs(client)
    with status_line(quiet=json) as show_status:
        while pending:
            for pending_id in sorted(pending):
                job = await client.job(pending_id)
                if job["status"] in ENDED:
                    pending.discard(pending_id)
                    report(job, json)
                    code = max(code, exit_codes.FAILURE if job["status"] == "failed" else exit_codes.OK)
                elif job["status"] == "running" or len(pending) == 1:
                    show_status(f"{format_state(job)}: {job_title(job)}; {len(pending)} left")
                else:
                    break
            if not pending and job_id is None:
                pending = await unfinished_jobs(client)
            await asyncio.sleep(FOLLOW_SECONDS if pending else 0)
    return code


async def unfinished_jobs(client: EngineClient) -> set[int]:
    return {job["id"] for status in ("queued", "running") async for job in client.iter_jobs(status=status)}


def report(job: dict[str, Any], json: bool) -> None:
    if json:
        output.print_json_line(job)
    elif job["error"]:
        output.print_line(f"job {job['id']} failed: {output.one_line(job_title(job))}: {job['error']}")
    else:
        existed = ", which already existed" if job["existed"] else ""
        outcome = f"is document {job['document_id']}{existed}"
        line = f"job {job['id']} done: {output.one_line(job_title(job))} {outcome}"
        output.print_line("; ".join(filter(None, (line, not_read(job)))))


def print_job(job: dict[str, Any]) -> None:
    output.print_fields(
        {
            "job": job["id"],
            "status": format_state(job),
            "error": job["error"],
            "document": f"{job['document_id']} (already existed)" if job["existed"] else job["document_id"],
            "not read": phrase(job["omitted"]),
            "kind": job["kind"],
            "name": job_title(job),
            "source path": job["source_path"],
            "tags": output.format_tags(job),
            "created": output.format_time(job["created_at"]),
            "started": output.format_time(job["started_at"]),
            "finished": output.format_time(job["finished_at"]),
        }
    )


def format_state(job: dict[str, Any]) -> str:
    """Return the job's state, with its progress while it runs."""
    return f"running {job['progress']:.0%}" if job["status"] == "running" else str(job["status"])


def not_read(job: dict[str, Any]) -> str:
    """Return the unread parts of the job's file; an empty text without any."""
    return f"not read: {phrase(job['omitted'])}" if job["omitted"] else ""


def job_title(job: dict[str, Any]) -> str:
    return str(job["title"] or job["filename"] or job["source_path"] or job["kind"])


COLUMNS: output.Columns = {
    "ID": "id",
    "STATUS": format_state,
    "DOCUMENT": "document_id",
    "CREATED": "created_at",
    "NAME": job_title,
    "ERROR": lambda job: job["error"] or not_read(job),
}
