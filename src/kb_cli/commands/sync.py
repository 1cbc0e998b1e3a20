"""kb sync: keep the knowledge base in sync with a folder."""

from pathlib import Path
from typing import Annotated

from kb_cli.commands.watch import sync_both
from kb_cli.runtime import exit_codes
from kb_cli.runtime.engine_call import call, call_async
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.options import FolderOptions, Json, TakeOver, argument, option, with_options
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder_names import named
from kb_cli.sync.report import exit_code, needs_yes, print_plan, print_result
from kb_cli.sync.round import plan_sync, sync_folder
from kb_cli.sync.watch_rounds import follow


@with_options
def sync(
    folder: Annotated[Path, argument("FOLDER", "The folder, such as ~/vault.")],
    options: FolderOptions,
    watch: Annotated[bool, option("--watch", "Keep running, and sync after each change.")] = False,
    dry_run: Annotated[bool, option("--dry-run", "Only show the changes that kb would make.")] = False,
    yes: Annotated[bool, option("--yes -y", "Allow --delete to delete many documents, or all in a folder.")] = False,
    take_over: TakeOver = False,
    both: Annotated[
        bool, option("--both", "From now on, when a note changes in kb, also write it to its Markdown file.")
    ] = False,
    json: Json = False,
) -> int:
    """Keep the knowledge base in sync with a folder.

    kb adds new files, replaces the documents of changed files, and skips unchanged files. When the command ends, you
    can search all of them. A file that you rename or move within the folder keeps its document, with its ID, dates and
    tags. As with 'kb add', kb skips files listed in .gitignore or .kbignore, and links to files outside the folder.
    Documents from an archive stay even if the archive is gone; to delete them, use 'kb delete'.

    --delete only deletes documents whose file you deleted. Documents stay if their disk is missing, their folder cannot
    be read, or their files are online-only. If a folder is suddenly empty, or more than five documents and more than a
    fifth of them all would be deleted at once, kb reports this and deletes nothing until you add --yes. If a deleted
    file reappears, kb restores its document from the bin. Each name belongs to one folder on one machine, so give
    another folder its own name (--as).

    With --both, the engine keeps the folder and kb in sync from now on, like 'kb watch add --both', and the command
    ends once both sides are the same.

    With --json, kb prints {"files", "deleted"}: files as in 'kb add --json', and deleted as a list of source paths.
    With --dry-run, kb prints {"added", "changed", "moved", "deleted"}, lists of source paths.
    """
    if watch and (dry_run or json):
        raise UsageError("--watch cannot be used with --dry-run or --json.")
    if both and (watch or dry_run):
        raise UsageError("--both cannot be used with --watch or --dry-run: the engine itself keeps the folder in sync.")
    local = options.folder(folder, is_sure=yes, take_over=take_over, is_watched=watch)
    if both:
        return sync_both(local, yes=yes, json=json)
    digests = DigestCache()
    if watch:  # retries if the engine is unreachable
        call_async(lambda client: follow(client, local, digests))
        return exit_codes.OK
    local = call(lambda client: named(client, local))
    if dry_run:
        planned = call_async(lambda client: plan_sync(client, local, digests))
        print_plan(planned, json=json)
        return exit_codes.USAGE if needs_yes(planned) else exit_codes.OK
    result = call_async(lambda client: sync_folder(client, local, digests, quiet=json))
    print_result(result, json=json)
    return exit_code(result)
