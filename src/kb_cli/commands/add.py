"""kb add: files and folders, a few at a time."""

import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Annotated

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.call import call_async
from kb_cli.runtime.options import STDIN, Exclude, FollowLinks, Json, Tags, Wait, split_tags
from kb_cli.runtime.paths import to_source_path
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.remote import fetch_files
from kb_cli.sync.report import print_failures, summarize, unreadable_items
from kb_cli.sync.selection import Selection, select_files
from kb_cli.sync.upload import Uploader

if TYPE_CHECKING:
    from kb.client.client import EngineClient


def add(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATHS", help="Files, folders, patterns; - for standard input.")
    ],
    tags: Tags = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title; only for a single file.")] = None,
    exclude: Exclude = None,
    follow_links: FollowLinks = False,
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
    like are passed over, and links out of the folder are not followed. What is named itself goes in.

    With --json, prints a list of {"path", "source_path", "job", "document_id", "error"}: job is the engine's receipt,
    or with --wait the finished job, or null if the document has this content already.
    """
    if STDIN in paths:
        if len(paths) > 1:
            raise exit_codes.UsageError("Standard input (-) goes in by itself.")
        item = FileItem(STDIN, source_path or STDIN, split_tags(tags))
        add_stdin(item, title, source_path, wait)
        return report([item], Selection(), wait, json)
    selection = select_files(paths, exclude or (), follow_links=follow_links)
    if (title or source_path) is not None and len(selection.files) != 1:
        raise exit_codes.UsageError(
            f"--title and --source-path are for a single file, and these are {len(selection.files)}."
        )
    items = [FileItem(str(file), source_path or to_source_path(file), split_tags(tags)) for file in selection.files]
    add_files(items, title, wait, quiet=json)
    return report(items + unreadable_items(selection), selection, wait, json)


def add_files(items: list[FileItem], title: str | None, wait: bool, *, quiet: bool) -> None:
    """Send files, but for those that the engine has.

    Raises:
        Interrupted: by Ctrl-C.
    """

    async def upload(client: "EngineClient") -> None:
        remote = await fetch_files(client, (each.source_path for each in items))
        uploader = Uploader(client, remote, DigestCache(), title, quiet=quiet)
        await uploader.upload_all(items)
        if wait:
            await uploader.wait_all(items)

    try:
        call_async(upload)
    except KeyboardInterrupt:
        accepted = sum(each.job is not None or each.document_id is not None for each in items)
        raise exit_codes.Interrupted(
            f"interrupted: {accepted} of {len(items)} are in or on their way; the same command goes on"
        ) from None


def add_stdin(item: FileItem, title: str | None, source_path: str | None, wait: bool) -> None:
    """Send what comes on standard input as a file; what kind of file it is, its content tells."""
    name = (source_path or "").rpartition("/")[2] or "standard input"

    async def upload(client: "EngineClient") -> None:
        item.job = await client.add_file(name, content, tags=item.tags, title=title, source_path=source_path)
        if wait:
            item.finish(await client.wait_for_job(item.job["job_id"]))

    with tempfile.TemporaryFile() as content:
        # Read here, where Ctrl-C ends it: an event loop would wait for the end of input.
        shutil.copyfileobj(sys.stdin.buffer, content)
        content.seek(0)
        call_async(upload)


def report(items: list[FileItem], selection: Selection, wait: bool, json: bool) -> int:
    """Print what became of the files, and return the exit code."""
    failed = [each for each in items if each.error]
    print_failures(failed)
    if json:
        output.print_json([each.to_json() for each in items])
    else:
        output.print_line(summarize(items, selection, waited=wait))
    return exit_codes.FAILURE if failed else exit_codes.OK
