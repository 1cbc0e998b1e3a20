"""kb add: send files, folders and web pages, a few at a time."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO, cast

from kb.api.errors import KbError
from kb.api.stream_safe import composed
from kb.api.web_address import is_page
from kb.client.client import EngineClient
from kb.folders.left_out import BY_USER
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call_async
from kb_cli.runtime.files import absolute
from kb_cli.runtime.options import STDIN, Exclude, FollowLinks, Json, Tags, Wait, argument, given_tags, option
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import FileSelection, select_files
from kb_cli.sync.folder_names import fetch_names
from kb_cli.sync.remote_files import fetch_extracted, fetch_files, fetch_rejected
from kb_cli.sync.report import print_failures, summarize, unreadable_items
from kb_cli.sync.upload import Uploader
from kb_cli.sync.web_fetch import fetch, without_userinfo
from kb_cli.sync.zip_archive import is_archive, unpacked

Paths = Annotated[
    list[str], argument("PATHS", "Files, folders, patterns such as '*.pdf', or web addresses; - reads standard input.")
]
Title = Annotated[str | None, option("--title TEXT", "A title for a single file or page, instead of its own.")]
SourcePath = Annotated[
    str | None,
    option(
        "--source-path PATH", "The source path of a single file in the knowledge base, instead of its path on the disk."
    ),
]
ZipNames = Annotated[
    str | None,
    option(
        "--zip-names CODE_PAGE",
        "The code page of file names in an archive, such as gbk, cp866 or cp932, if kb guesses wrong.",
    ),
]


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    tags: list[str]
    title: str | None
    source_path: str | None
    exclude: list[str]
    zip_names: str | None
    wait: bool
    quiet: bool


def add(
    paths: Paths,
    tags: Tags = None,
    title: Title = None,
    exclude: Exclude = None,
    follow_links: FollowLinks = False,
    source_path: SourcePath = None,
    zip_names: ZipNames = None,
    whole: Annotated[bool, option("--whole", "Keep the whole web page, menus included.")] = False,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add files, folders or web pages.

    You can run it again at any time: kb skips unchanged files, and continues an interrupted command. In folders, kb
    also skips hidden files, files listed in .gitignore or .kbignore, private keys, node_modules and the like, links
    to files outside the folder, archives, and audio and pictures that no extractor can read; it does add pictures that
    a Markdown file shows. If you name a file yourself, kb adds it; if you name an archive (.zip), it adds the files
    inside.

    Your machine fetches web addresses itself, again each time you add them. kb keeps the readable part of a page with
    its title, author and date, and drops menus, cookie banners and sidebars.

    With --json, kb prints a list of {"path", "source_path", "job", "document_id", "error"}: job is the engine's
    receipt, or with --wait the finished job, or null if the document already has this content.
    """
    check_code_page(zip_names)
    if whole and not any(map(is_page, paths)):
        raise exit_codes.UsageError("--whole only applies to web addresses, such as https://example.com/page.")
    source_path = source_path and composed(source_path)
    options = Options(given_tags(tags), title, source_path, exclude or [], zip_names, wait, quiet=json)
    selection = FileSelection()
    if STDIN in paths:
        items = [add_stdin(paths, options)]
    elif any(map(is_page, paths)):
        items = add_pages(paths, options, whole=whole)
    else:
        selection = select_files(paths, options.exclude, follow_links=follow_links)
        items = [*add_selected(paths, selection, options), *unreadable_items(selection)]
    return report(items, selection, wait, json)


def add_selected(paths: list[str], selection: FileSelection, options: Options) -> list[FileItem]:
    """Send the selected files, and the files in the selected archives."""
    archives = [*filter(is_archive, selection.files)]
    if archives and options.title is not None:
        raise exit_codes.UsageError("--title needs a single file, but kb adds each file in an archive separately.")
    if selection.passed_over:
        selection.take(call_async(fetch_extracted))
    is_single = len(selection.files) == 1
    if (options.title or options.source_path) is not None and not is_single:
        raise exit_codes.UsageError(
            f"--title and --source-path need a single file, but kb found {len(selection.files)}."
        )
    named = {absolute(Path(path).expanduser()) for path in paths}
    names = call_async(fetch_names)
    items = [
        FileItem(str(file), options.source_path or names.source_path(file), options.tags, is_named=file in named)
        for file in selection.files
        if file not in archives
    ]
    items = without_left_out(items, names.left_out, selection)
    if items:
        add_files(items, options)
    for archive in archives:
        prefix = options.source_path or names.source_path(archive)
        try:
            unpacked_items, inside = add_archive(archive, prefix, options)
        except (exit_codes.UsageError, exit_codes.LocalError) as error:
            if is_single:
                raise
            items.append(FileItem(str(archive), prefix, error=error.message.removeprefix(f"{archive}: ")))
        else:
            items += unpacked_items
            selection.add_left_out(inside)
    return items


def without_left_out(items: list[FileItem], left_out: frozenset[str], selection: FileSelection) -> list[FileItem]:
    """Return the files except files that the user left out (`kb delete --leave-out`), and count the latter."""
    remaining = [item for item in items if item.is_named or item.source_path not in left_out]
    if len(remaining) < len(items):
        selection.ignored[BY_USER] = len(items) - len(remaining)
    return remaining


def add_files(items: list[FileItem], options: Options) -> None:
    """Send the files that the engine does not have yet."""

    async def upload(client: EngineClient) -> None:
        remote = await fetch_files(client, (item.source_path for item in items))
        rejected = await fetch_rejected(client)
        uploader = Uploader(client, remote, rejected, DigestCache(), options.title, quiet=options.quiet)
        await uploader.upload_all(items)
        if options.wait:
            await uploader.wait_all(items)

    try:
        call_async(upload)
    except KeyboardInterrupt:
        accepted = sum(item.job is not None or item.document_id is not None for item in items)
        raise exit_codes.Interrupted(
            f"interrupted: kb accepted {accepted} of {len(items)} files; run the same command again to continue"
        ) from None


def add_stdin(paths: list[str], options: Options) -> FileItem:
    """Send standard input as a file; the engine detects its type from the content."""
    if len(paths) > 1:
        raise exit_codes.UsageError("Standard input (-) must be the only path. Add other files with a second command.")
    name = (options.source_path or "").rpartition("/")[2] or "standard input"
    item = FileItem(STDIN, options.source_path or STDIN, options.tags)
    with tempfile.TemporaryFile() as content:
        # Read it before the event loop starts, which would not stop at Ctrl-C but wait for the end of the input.
        shutil.copyfileobj(sys.stdin.buffer, content)
        content.seek(0)
        send(item, name, cast("BinaryIO", content), options, options.source_path)
    return item


def send(item: FileItem, name: str, content: BinaryIO, options: Options, source_path: str | None) -> None:
    async def upload(client: EngineClient) -> None:
        item.job = await client.add_file(name, content, tags=item.tags, title=options.title, source_path=source_path)
        if options.wait:
            item.finish(await client.wait_for_job(item.job["job_id"]))

    call_async(upload)


def add_pages(addresses: list[str], options: Options, *, whole: bool) -> list[FileItem]:
    """Send the content of web addresses, and replace documents from the same address.

    An error of one address does not stop the others.
    """
    shown = map(without_userinfo, addresses)
    items = [FileItem(address, options.source_path or address, options.tags) for address in shown]
    if not all(map(is_page, addresses)):
        raise exit_codes.UsageError("'kb add' takes web addresses or files, not both. Run one command for each.")
    if len(items) > 1 and (options.title or len({item.source_path for item in items}) == 1):
        raise exit_codes.UsageError(f"--title and --source-path need a single page, but you named {len(items)}.")
    for address, item in zip(addresses, items, strict=True):
        try:
            with fetch(address, whole=whole) as fetched:
                item.source_path = options.source_path or call_async(partial(first_address, fetched.addresses))
                send(item, fetched.name, fetched.content, options, item.source_path)
            if fetched.why_whole:
                output.print_error(f"{item.path}: kb keeps the whole page, including menus: {fetched.why_whole}")
        except exit_codes.LocalError as error:
            item.error = error.message
        except KbError as error:
            if exit_codes.exit_code_for(error) != exit_codes.REFUSED:
                raise
            item.error = error.detail
    return items


async def first_address(addresses: Sequence[str], client: EngineClient) -> str:
    """Return the address under which the engine has a page already, or failing that, the last one."""
    known = await fetch_files(client, addresses)
    return next((address for address in addresses if address in known), addresses[-1])


def add_archive(archive: Path, prefix: str, options: Options) -> tuple[list[FileItem], FileSelection]:
    """Send the files in an archive, with source paths below `prefix`; return them and the skipped files."""
    with unpacked(archive, options.exclude, options.zip_names) as (folder, selection, guessed):
        if guessed:
            pages = ", ".join(sorted(guessed))
            output.print_error(f"{archive}: kb read the file names as {pages}; --zip-names sets another code page")
        if selection.passed_over:
            selection.take(call_async(fetch_extracted))
        items = [
            FileItem(str(file), composed(f"{prefix}/{file.relative_to(folder).as_posix()}"), options.tags)
            for file in selection.files
        ]
        add_files(items, options)
    return items, selection


def check_code_page(code_page: str | None) -> None:
    try:
        b"a".decode(code_page or "utf-8")
    except LookupError:
        raise exit_codes.UsageError(f"--zip-names: {code_page} is not a code page. Try gbk, cp866 or cp932.") from None


def report(items: list[FileItem], selection: FileSelection, wait: bool, json: bool) -> int:
    new = [item for item in items if item.error and item.is_news]
    print_failures(new)
    if json:
        output.print_json([item.to_json() for item in items])
    else:
        output.print_line(summarize(items, selection, waited=wait))
    return exit_codes.FAILURE if new else exit_codes.OK
