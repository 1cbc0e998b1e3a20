"""kb add: files and folders, a few at a time."""

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from kb.api.errors import KbError
from kb.api.stream_safe import composed
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call_async
from kb_cli.runtime.options import STDIN, Exclude, FollowLinks, Json, Tags, Wait, split_tags
from kb_cli.runtime.source_paths import absolute
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import LEFT_OUT, FileSelection, select_files
from kb_cli.sync.folder_names import fetch_names
from kb_cli.sync.remote_files import fetch_extracted, fetch_files, fetch_rejected
from kb_cli.sync.report import print_failures, summarize, unreadable_items
from kb_cli.sync.upload import Uploader
from kb_cli.sync.web_fetch import fetch, is_address, without_userinfo
from kb_cli.sync.zip_archive import is_archive, unpacked

if TYPE_CHECKING:
    from kb.client.client import EngineClient


def add(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATHS", help="Files, folders, patterns, or web addresses; - for standard input."),
    ],
    tags: Tags = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title; only for a single file.")] = None,
    exclude: Exclude = None,
    follow_links: FollowLinks = False,
    source_path: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="What to call a single file in the knowledge base, instead of its path."),
    ] = None,
    zip_names: Annotated[
        str | None,
        typer.Option(
            "--zip-names",
            metavar="CODE_PAGE",
            help="How names in an archive are encoded that do not say so: gbk, cp866, cp932. Guessed otherwise.",
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Keep all of a web page, menus included.")] = False,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add files, folders with all that is in them, or web pages.

    Run it again whenever you like: unchanged files are skipped, and an interrupted command continues. Left out of
    folders is what is hidden, what a .gitignore or .kbignore there names, private keys, node_modules and the like;
    pictures, sound and archives are passed over, and links out of the folder are not followed. What you name yourself
    goes in; an archive (.zip) that you name goes in as the files in it.

    A web address is fetched from here, and again whenever you add it again. Of a page the readable part is kept, with
    its title, author and date: no menus, cookie banners and sidebars.

    With --json, prints a list of {"path", "source_path", "job", "document_id", "error"}: job is the engine's receipt,
    or with --wait the finished job, or null if the document has this content already.
    """
    tagged = split_tags(tags)
    check_code_page(zip_names)
    source_path = source_path and composed(source_path)
    if whole and not any(map(is_address, paths)):
        raise exit_codes.UsageError("--whole is for web addresses.")
    if STDIN in paths:
        if len(paths) > 1:
            raise exit_codes.UsageError("Standard input (-) goes in by itself.")
        item = FileItem(STDIN, source_path or STDIN, tagged)
        add_stdin(item, title, source_path, wait)
        return report([item], FileSelection(), wait, json)
    if any(map(is_address, paths)):
        items = [FileItem(address, source_path or address, tagged) for address in map(without_userinfo, paths)]
        add_pages(paths, items, title, whole=whole, wait=wait)
        return report(items, FileSelection(), wait, json)
    selection = select_files(paths, exclude or (), follow_links=follow_links)
    archives = [*filter(is_archive, selection.files)]
    if archives and title is not None:
        raise exit_codes.UsageError("--title is for a single file, and an archive goes in as the files in it.")
    if selection.passed_over:
        selection.take(call_async(fetch_extracted))
    if (title or source_path) is not None and len(selection.files) != 1:
        raise exit_codes.UsageError(
            f"--title and --source-path are for a single file, and these are {len(selection.files)}."
        )
    named = {absolute(Path(path).expanduser()) for path in paths}
    names = call_async(fetch_names)
    items = [
        FileItem(str(file), source_path or names.source_path(file), tagged, is_named=file in named)
        for file in selection.files
        if file not in archives
    ]
    items = without_left_out(items, names.left_out, selection)
    if items:
        add_files(items, title, wait, quiet=json)
    for archive in archives:
        prefix = source_path or names.source_path(archive)
        try:
            unpacked_items, inside = add_archive(archive, prefix, exclude or (), tagged, wait, zip_names, quiet=json)
        except (exit_codes.UsageError, exit_codes.LocalError) as error:
            if len(selection.files) == 1:
                raise
            items.append(FileItem(str(archive), prefix, error=error.message.removeprefix(f"{archive} ")))
        else:
            items += unpacked_items
            selection.add_left_out(inside)
    return report([*items, *unreadable_items(selection)], selection, wait, json)


def without_left_out(items: list[FileItem], left_out: frozenset[str], selection: FileSelection) -> list[FileItem]:
    """Return the files that were named or that nobody left out; count the others."""
    remaining = [item for item in items if item.is_named or item.source_path not in left_out]
    if len(remaining) < len(items):
        selection.ignored[LEFT_OUT] = len(items) - len(remaining)
    return remaining


def add_files(items: list[FileItem], title: str | None, wait: bool, *, quiet: bool) -> None:
    """Send files, but for those that the engine has.

    Raises:
        Interrupted: by Ctrl-C.
    """

    async def upload(client: "EngineClient") -> None:
        remote = await fetch_files(client, (item.source_path for item in items))
        uploader = Uploader(client, remote, await fetch_rejected(client), DigestCache(), title, quiet=quiet)
        await uploader.upload_all(items)
        if wait:
            await uploader.wait_all(items)

    try:
        call_async(upload)
    except KeyboardInterrupt:
        accepted = sum(item.job is not None or item.document_id is not None for item in items)
        raise exit_codes.Interrupted(
            f"interrupted: {accepted} of {len(items)} are in or on the way; run the same command again to continue"
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


def add_pages(addresses: list[str], items: list[FileItem], title: str | None, *, whole: bool, wait: bool) -> None:
    """Send what is at addresses of the web; documents that came from there are replaced.

    What is wrong with one stops no other.

    Raises:
        UsageError: there is a path among them, or one title for several.
    """
    if not all(map(is_address, addresses)):
        raise exit_codes.UsageError("Addresses and files go in by commands of their own.")
    if len(items) > 1 and (title or len({item.source_path for item in items}) == 1):
        raise exit_codes.UsageError(f"--title and --source-path are for a single page, and these are {len(items)}.")

    async def upload(client: "EngineClient", item: FileItem, name: str, content: BinaryIO) -> None:
        item.job = await client.add_file(name, content, tags=item.tags, title=title, source_path=item.source_path)
        if wait:
            item.finish(await client.wait_for_job(item.job["job_id"]))

    for address, item in zip(addresses, items, strict=True):
        try:
            with fetch(address, whole=whole) as fetched:
                call_async(partial(upload, item=item, name=fetched.name, content=fetched.content))
            if fetched.why_whole:
                output.print_error(f"{item.path}: all of the page is kept, menus included: {fetched.why_whole}")
        except exit_codes.LocalError as error:
            item.error = error.message
        except KbError as error:
            if exit_codes.exit_code_for(error) != exit_codes.REFUSED:
                raise
            item.error = error.detail


def add_archive(
    archive: Path,
    prefix: str,
    exclude: list[str] | tuple[()],
    tags: list[str],
    wait: bool,
    code_page: str | None,
    *,
    quiet: bool,
) -> tuple[list[FileItem], FileSelection]:
    """Send the files in an archive, under `prefix` as if it were a folder; return them with what was left out.

    Raises:
        UsageError: it is damaged or encrypted, or holds more than anyone means.
        LocalError: there is no room for what is in it.
        Interrupted: by Ctrl-C.
    """
    with unpacked(archive, exclude, code_page) as (folder, selection, guessed):
        if guessed:
            pages = ", ".join(sorted(guessed))
            output.print_error(f"{archive}: names in it read as {pages}; --zip-names chooses another code page")
        if selection.passed_over:
            selection.take(call_async(fetch_extracted))
        items = [
            FileItem(str(file), composed(f"{prefix}/{file.relative_to(folder).as_posix()}"), tags)
            for file in selection.files
        ]
        add_files(items, None, wait, quiet=quiet)
    return items, selection


def check_code_page(code_page: str | None) -> None:
    """See that a code page is one.

    Raises:
        UsageError: there is no such code page.
    """
    try:
        b"a".decode(code_page or "utf-8")
    except LookupError:
        raise exit_codes.UsageError(
            f"--zip-names: there is no code page {code_page}; try gbk, cp866 or cp932."
        ) from None


def report(items: list[FileItem], selection: FileSelection, wait: bool, json: bool) -> int:
    """Print what became of the files, and return the exit code."""
    new = [item for item in items if item.error and item.is_news]
    print_failures(new)
    if json:
        output.print_json([item.to_json() for item in items])
    else:
        output.print_line(summarize(items, selection, waited=wait))
    return exit_codes.FAILURE if new else exit_codes.OK
