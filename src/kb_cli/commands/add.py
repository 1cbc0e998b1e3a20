"""kb add: files and folders, a few at a time."""

import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb_cli.commands.jobs import finished
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask_at_length
from kb_cli.runtime.options import STDIN, Exclude, Json, Tags, Wait, split
from kb_cli.sync.remote import known_at
from kb_cli.sync.selection import Found, files_at, source_path_of
from kb_cli.sync.upload import Digests, Sender, Sent, complain_of, summary, unlisted

if TYPE_CHECKING:
    from kb.client.client import EngineClient


def add(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATHS", help="Files, folders, patterns; - for standard input.")
    ],
    tags: Tags = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title; only for a single file.")] = None,
    exclude: Exclude = None,
    source_path: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="What to call a single file in the knowledge base, instead of its path."),
    ] = None,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add files, and folders with all that is in them.

    What is there already is not sent again, so a broken off command goes on when it is given again. Of folders, what is
    hidden is left out, and what a .kbignore there names in the syntax of .gitignore; pictures, sound, archives and the
    like are passed over. What is named itself goes in.

    With --json, prints a list of {"path", "source_path", "job", "document_id", "error"}: job is the engine's receipt,
    or with --wait the finished job, or null if the document has this content already.
    """
    if STDIN in paths:
        return add_standard_input(paths, {"title": title, "source_path": source_path, "tags": split(tags)}, wait, json)
    found = files_at(paths, exclude or ())
    if (title or source_path) is not None and len(found.files) != 1:
        raise exits.UsageError(f"--title and --source-path are for a single file, and these are {len(found.files)}.")
    files = [Sent(str(file), source_path or source_path_of(file), split(tags)) for file in found.files]

    async def work(engine: "EngineClient") -> None:
        known = await known_at(engine, (each.source_path for each in files))
        sender = Sender(engine, known, Digests(), title, quiet=json)
        await sender.send_all(files)
        if wait:
            await sender.settle_all(files)

    try:
        ask_at_length(work)
    except KeyboardInterrupt:
        accepted = sum(each.job is not None or each.document_id is not None for each in files)
        raise exits.Interrupted(
            f"interrupted: {accepted} of {len(files)} are in or on their way; the same command goes on"
        ) from None
    return told(files + unlisted(found), found, wait, json)


def told(files: list[Sent], found: Found, wait: bool, json: bool) -> int:
    """Print what became of the files; answers the exit code."""
    failed = [each for each in files if each.error]
    complain_of(failed)
    if json:
        output.print_json([each.shown() for each in files])
    else:
        output.say(summary(files, found, waited=wait))
    return exits.NOTHING if failed else exits.OK


def add_standard_input(paths: list[str], fields: dict[str, Any], wait: bool, json: bool) -> int:
    """Add what comes on standard input as a file; what kind of file it is, its content tells."""
    if len(paths) > 1:
        raise exits.UsageError("Standard input (-) goes in by itself.")
    sent = Sent(STDIN, fields["source_path"] or STDIN)
    name = (fields["source_path"] or "").rpartition("/")[2] or "standard input"

    async def work(engine: "EngineClient") -> None:
        sent.job = await engine.add_file(name, content, **fields)
        if wait:
            sent.job = await finished(engine, sent.job["job_id"])
            sent.error, sent.document_id = sent.job["error"], sent.job["document_id"]

    with tempfile.TemporaryFile() as content:
        # Read here, where Ctrl-C ends it: an event loop would wait for the end of input.
        shutil.copyfileobj(sys.stdin.buffer, content)
        content.seek(0)
        ask_at_length(work)
    return told([sent], Found(), wait, json)
