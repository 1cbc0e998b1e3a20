"""kb sync: make the knowledge base hold what a folder holds."""

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.api.errors import KbError, NotFound
from kb_cli.runtime import exit_codes as exits
from kb_cli.runtime import output
from kb_cli.runtime.call import ask_at_length, in_parallel
from kb_cli.runtime.options import Exclude, Json, Tags, split
from kb_cli.sync.remote import Known, known_below
from kb_cli.sync.selection import Found, absolute, files_at, source_path_of
from kb_cli.sync.upload import AT_ONCE, Digests, Sender, Sent, complain_of, summary, unlisted

if TYPE_CHECKING:
    from kb.client.client import EngineClient

RETRY_SECONDS = 5
TICK = 500
"""How many milliseconds pass between two looks at what has to be tried again."""
ATTACHED = "#"
"""Stands between the path of a message and the name of a file that came with it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What to keep in step.

    Args:
        path: the folder.
        prefix: how the source paths of its files begin.
        tags: what its files are tagged with.
        exclude: what is left out.
        delete: whether documents go whose file is gone.
        may_be_empty: whether they go even when there are no files at all.
    """

    path: Path
    prefix: str
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    delete: bool = False
    may_be_empty: bool = False

    def check(self) -> None:
        """See whether there is such a folder.

        Raises:
            UsageError: there is none.
        """
        if not self.path.is_dir():
            raise exits.UsageError(f"There is no folder {self.path}.")

    def files(self) -> tuple[Found, list[Sent]]:
        """What is in the folder now.

        Raises:
            UsageError: it is gone.
        """
        self.check()
        found = files_at([str(self.path)], self.exclude)
        return found, [
            Sent(str(file), self.prefix + file.relative_to(self.path).as_posix(), self.tags) for file in found.files
        ]


@dataclass
class Outcome:
    """What a round did, or would do."""

    found: Found
    files: list[Sent]
    deleted: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Sent]:
        """What did not go in."""
        return [each for each in self.files if each.error]


def sync(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder.")],
    tags: Tags = None,
    exclude: Exclude = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete documents from below the folder whose file is gone; never notes.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="What to call the folder, instead of its path on this machine."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, and follow each change.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Let --delete empty it, if the folder is empty.")] = False,
    json: Json = False,
) -> int:
    """Make the knowledge base hold what a folder holds.

    New files go in, and changed ones are replaced. When it ends, all of that can be found; what is unchanged is not
    sent. A file that moved within the folder keeps its tags with --delete. As with add, a .kbignore says what to
    leave out.

    With --json, prints {"files", "deleted"}: files as add has them, deleted is a list of source paths.
    """
    if watch and (dry_run or json):
        raise exits.UsageError("--watch goes with neither --dry-run nor --json.")
    prefix = (name or source_path_of(folder.expanduser())).rstrip("/") + "/"
    wanted = Folder(absolute(folder.expanduser()), prefix, tuple(split(tags)), tuple(exclude or ()), delete, yes)
    digests = Digests()
    if dry_run:
        return told_plan(ask_at_length(lambda engine: plan(engine, wanted, digests)), json)
    if watch:
        ask_at_length(lambda engine: follow(engine, wanted, digests))
        return exits.OK
    return told(ask_at_length(lambda engine: one_round(engine, wanted, digests, quiet=json)), json)


async def one_round(engine: "EngineClient", folder: Folder, digests: Digests, *, quiet: bool) -> Outcome:
    """Send what is new or changed, wait until it can be found, then delete what is gone."""
    found, files = folder.files()
    known = await known_below(engine, folder.prefix)
    if folder.delete:
        refuse_empty(folder, found, known)
        keep_tags_of_moved(files, known, digests)
    sender = Sender(engine, known, digests, quiet=quiet)
    await sender.send_all(files)
    await sender.settle_all(files)
    outcome = Outcome(found, files + unlisted(found))
    if folder.delete:
        outcome.deleted = await delete_gone(engine, folder, outcome, known)
    return outcome


async def delete_gone(
    engine: "EngineClient", folder: Folder, outcome: Outcome, known: Mapping[str, Known]
) -> list[str]:
    """Delete the documents whose file is gone, those that were still on their way in before; answers their paths."""
    sender = Sender(engine, {}, Digests(), quiet=True)
    await sender.settle_all(
        [Sent(path, path, job={"job_id": each.job_id}) for path, each in known.items() if each.job_id]
    )
    gone = gone_from(outcome.files, outcome.found, folder, await known_below(engine, folder.prefix))

    async def delete(path: str) -> None:
        try:
            await engine.delete_document(gone[path])
        except NotFound:
            gone.pop(path)

    await in_parallel(delete, list(gone), AT_ONCE)
    return sorted(gone)


def gone_from(files: Iterable[Sent], found: Found, folder: Folder, known: Mapping[str, Known]) -> dict[str, int]:
    """The documents whose file is gone, by source path. What stands in a folder that cannot be listed is not gone."""
    there = {each.source_path for each in files}
    unseen = tuple(f"{folder.prefix}{path.relative_to(folder.path).as_posix()}/" for path in found.unreadable)
    return {
        path: each.document_id
        for path, each in known.items()
        if each.document_id is not None and not is_of(path, there) and not path.startswith(unseen)
    }


def is_of(path: str, there: set[str]) -> bool:
    """Whether a source path is a file's that is there, or that of something that came with one."""
    if path in there:
        return True
    return any(path[:at] in there for at, character in enumerate(path) if character == ATTACHED)


def refuse_empty(folder: Folder, found: Found, known: Mapping[str, Known]) -> None:
    """An empty folder is more often a disk that is not there than a wish to lose everything.

    Raises:
        UsageError: it would delete all there is.
    """
    if known and not found.files and not folder.may_be_empty:
        raise exits.UsageError(
            f"{folder.path} holds no files, and {len(known)} documents would be deleted. Is its disk there? "
            "If so, say --yes."
        )


def keep_tags_of_moved(files: Iterable[Sent], known: Mapping[str, Known], digests: Digests) -> None:
    """Tag new files as the documents of the same content whose file is gone."""
    files = list(files)
    there = {each.source_path for each in files}
    gone = {each.content_hash: each.tags for path, each in known.items() if path not in there}
    for each in files if gone else ():
        if each.source_path not in known:
            try:
                tags = gone.get(digests.of(each.path), frozenset())
            except OSError:
                continue
            each.tags = list(dict.fromkeys([*each.tags, *sorted(tags)]))


async def follow(engine: "EngineClient", folder: Folder, digests: Digests) -> None:
    """Go round at once, then after each change; what fails is tried again, also when the engine is away."""
    import asyncio

    from watchfiles._rust_notify import WatchfilesRustInternalError

    folder.check()
    is_first = True
    while True:
        try:
            await follow_until_away(engine, folder, digests, is_first=is_first)
        # Something happened to a file whose name is not UTF-8, or there is no folder.
        except* (WatchfilesRustInternalError, FileNotFoundError):
            pass
        is_first = False
        await asyncio.sleep(RETRY_SECONDS)


async def follow_until_away(engine: "EngineClient", folder: Folder, digests: Digests, *, is_first: bool) -> None:
    """Go round at once, then after each change, until the engine is away, or the folder: it may come back another."""
    from watchfiles import awatch

    watch = awatch(folder.path, yield_on_timeout=True, rust_timeout=TICK, ignore_permission_denied=True)
    # The first round waits until changes are watched, so that none falls between.
    is_due = True
    async with aclosing(watch) as changes:
        async for change in changes:
            if change or is_due:
                if await watched_round(engine, folder, digests, is_first=is_first):
                    return
                is_due = is_first = False


async def watched_round(engine: "EngineClient", folder: Folder, digests: Digests, *, is_first: bool) -> bool:
    """Go round once, and say what was done if anything was; answers whether the engine or the folder was away."""
    try:
        outcome = await one_round(engine, folder, digests, quiet=False)
    except KbError as error:
        output.complain(error.detail)
        return True
    except typer.TyperException as error:
        output.complain(error.format_message())
        return True
    if is_first or outcome.deleted or any(each.is_news for each in outcome.files):
        told(outcome, json=False)
    return False


async def plan(engine: "EngineClient", folder: Folder, digests: Digests) -> dict[str, list[str]]:
    """What a round would do."""
    found, files = folder.files()
    known = await known_below(engine, folder.prefix)
    if folder.delete:
        refuse_empty(folder, found, known)
    there = [each for each in files if each.source_path in known]
    return {
        "add": [each.source_path for each in files if each.source_path not in known],
        "replace": [
            each.source_path for each in there if digests.of(each.path) != known[each.source_path].content_hash
        ],
        "delete": sorted(gone_from(files, found, folder, known)) if folder.delete else [],
    }


def told_plan(planned: dict[str, list[str]], json: bool) -> int:
    """Print what would be done."""
    if json:
        output.print_json(planned)
    else:
        output.table(("WHAT", "SOURCE PATH"), [(act, path) for act, paths in planned.items() for path in paths])
    return exits.OK


def told(outcome: Outcome, json: bool) -> int:
    """Print what was done; answers the exit code."""
    complain_of([each for each in outcome.failed if each.is_news])
    if json:
        answer: dict[str, Any] = {"files": [each.shown() for each in outcome.files], "deleted": outcome.deleted}
        output.print_json(answer)
    else:
        deleted = f", {len(outcome.deleted)} deleted" if outcome.deleted else ""
        output.say(summary(outcome.files, outcome.found, waited=True) + deleted)
    return exits.NOTHING if outcome.failed else exits.OK
