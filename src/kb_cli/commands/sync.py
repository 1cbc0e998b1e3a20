"""kb sync: make the knowledge base hold what a folder holds."""

from pathlib import Path
from typing import Annotated

import typer

from kb.api.stream_safe import composed
from kb_cli.runtime import exit_codes
from kb_cli.runtime.engine_call import call, call_async
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import Exclude, FollowLinks, Json, Tags, split_tags
from kb_cli.runtime.source_paths import absolute
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_names import as_prefix, named
from kb_cli.sync.report import SyncResult, print_plan, print_result
from kb_cli.sync.round import plan_sync, sync_folder
from kb_cli.sync.watch_rounds import follow


def sync(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder.")],
    tags: Tags = None,
    exclude: Exclude = None,
    follow_links: FollowLinks = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete documents from below the folder whose file is gone; never notes.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="What to call the folder, instead of its path."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Keep running, and follow each change.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Let --delete remove many documents at once, or all of a folder.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Let this folder have a name that another folder or machine has.")
    ] = False,
    json: Json = False,
) -> int:
    """Keep the knowledge base in step with a folder.

    New files go in, and changed ones are replaced. When it ends, all of that can be found; what is unchanged is not
    sent. A file that was renamed or moved within the folder stays the same document, with its id, dates and tags. As
    with add, .gitignore and .kbignore say what to leave out, and links out of the folder are not followed. What came in
    an archive is not deleted, even if the archive is gone: kb delete does that.

    --delete takes only what you deleted: documents stay while their disk is away, their folder cannot be read, or their
    files are only online. If a folder is suddenly empty, or more than five documents and more than a fifth of all would
    go at once, kb says so and deletes nothing until you add --yes. A file that comes back brings its document back from
    the bin. One name belongs to one folder on one machine: give another folder another name (--as).

    With --json, prints {"files", "deleted"}: files as add has them, deleted is a list of source paths; with --dry-run
    {"added", "changed", "moved", "deleted"}, lists of source paths.
    """
    if watch and (dry_run or json):
        raise UsageError("--watch goes with neither --dry-run nor --json.")
    path = folder.expanduser()
    prefix = as_prefix(composed(name)) if name else ""
    local = Folder(
        *(absolute(path), prefix, tuple(split_tags(tags)), tuple(exclude or ()), delete),
        is_sure=yes,
        follow_links=follow_links,
        take_over=take_over,
        is_watched=watch,
    )
    digests = DigestCache()
    if watch:  # which goes on when the engine is away
        call_async(lambda client: follow(client, local, digests))
        return exit_codes.OK
    local = call(lambda client: named(client, local))
    if dry_run:
        planned = call_async(lambda client: plan_sync(client, local, digests))
        print_plan(planned, json=json)
        return exit_codes.USAGE if needs_yes(planned) else exit_codes.OK
    result = call_async(lambda client: sync_folder(client, local, digests, quiet=json))
    print_result(result, json=json)
    if needs_yes(result):
        return exit_codes.USAGE
    return exit_codes.FAILURE if result.withheld or any(item.is_news for item in result.failed) else exit_codes.OK


def needs_yes(result: SyncResult) -> bool:
    """Return whether documents stay until a person says that their files were deleted."""
    return any(withheld.needs_yes for withheld in result.withheld)
