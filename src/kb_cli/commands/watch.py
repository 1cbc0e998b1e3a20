"""kb watch: folders that a service keeps in sync, without a terminal."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from kb.api.errors import KbError, NotFound
from kb.api.stream_safe import composed
from kb.client.client import EngineClient
from kb.folders.disk_view import describe_mounts, place_of
from kb.folders.left_out import outcome_of
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.completion import complete_actions
from kb_cli.runtime.config import load_config
from kb_cli.runtime.engine_call import call, call_async
from kb_cli.runtime.exit_codes import UsageError
from kb_cli.runtime.files import absolute
from kb_cli.runtime.options import FolderOptions, Json, TakeOver, argument, option, with_options
from kb_cli.sync.digests import DigestCache
from kb_cli.sync.folder import Folder
from kb_cli.sync.folder_claim import claim, is_from_here, look_up, machine_id
from kb_cli.sync.folder_names import named, resolved
from kb_cli.sync.report import count_files, exit_code, print_result
from kb_cli.sync.round import Round, sync_folder
from kb_cli.sync.watch_records import WatchedFolder, load_records, remove_record, save_record
from kb_cli.sync.watch_threads import Watcher, alone, described, end_with_parent

ADD, LIST, NOW, REMOVE, RUN = "add", "list", "now", "remove", "run"
START_SECONDS = 6
"""How long 'kb watch add' waits for the program that watches."""

NO_PROGRAM = (
    "No program on this machine is watching it yet. 'kb serve' and 'kb service' watch folders for their own engine"
    " only; for an engine elsewhere, start 'kb watch run'."
)


@with_options
def watch(
    words: Annotated[
        list[str],
        argument(
            "add FOLDER | list | now [FOLDER] | remove FOLDER | run",
            "The action, and the folder (its path or its name).",
            complete=complete_actions(ADD, LIST, NOW, REMOVE, RUN),
        ),
    ],
    options: FolderOptions,
    take_over: TakeOver = False,
    yes: Annotated[
        bool, option("--yes -y", "With 'now': allow the sync to delete many documents, or all in a folder.")
    ] = False,
    json: Json = False,
    both: Annotated[
        bool, option("--both", "With 'add': when a note changes in kb, also write it to its Markdown file.")
    ] = False,
    new_notes: Annotated[
        str | None, option("--new-notes", "With --both: the subfolder for notes without a path.")
    ] = None,
    child: Annotated[bool, option("--child", "", hidden=True)] = False,
) -> int:
    """Keep folders in sync in the background.

    'add' remembers a folder with its options, or changes its options. 'kb serve' and 'kb service' then sync it after
    each change. 'list' shows the last sync of each folder, as does the Folders page in the web interface. 'now' syncs
    at once. 'remove' stops watching a folder and keeps its documents.

    The options work as in 'kb sync'. kb remembers this machine's folders in ~/.config/kb/watched.
    For an engine on another machine, start 'kb watch run' where the folders are; it runs until you stop it.

    With --both, the Markdown files become notes, which you, your programs and your agents can edit on either side. The
    engine itself keeps such a folder in sync, so the folder must be on the engine's machine. If you delete a file, its
    note goes to the bin.
    """
    action, *folders = words
    if action == ADD and len(folders) == 1:
        folder = options.folder(Path(folders[0]), take_over=take_over)
        if both:
            return add_both(folder, new_notes, json=json)
        if new_notes is not None:
            raise UsageError("--new-notes only works with --both.")
        return add(folder, json=json)
    if any(vars(options).values()) or take_over or both or new_notes is not None:
        raise UsageError("Folder options such as --tags, --delete and --both only work with 'add'.")
    if action == NOW and len(folders) <= 1:
        return sync_now(folders[0] if folders else None, yes=yes, json=json)
    if yes:
        raise UsageError("--yes only works with 'now'.")
    if action == LIST and not folders:
        return list_watched(json=json)
    if action == REMOVE and len(folders) == 1:
        return remove(folders[0], json=json)
    if action == RUN and not folders:
        return run(is_child=child)
    raise UsageError("Use 'add', 'now' or 'remove' with one folder, or 'list' or 'run' alone: 'kb watch add ~/vault'.")


def add(folder: Folder, *, json: bool) -> int:
    """Register a folder with the engine and on this machine."""
    folder.check()
    try:
        str(folder.path).encode()
    except UnicodeEncodeError:
        raise UsageError("The path of this folder is not UTF-8. Rename the folder.") from None

    async def register(client: EngineClient) -> tuple[WatchedFolder, int]:
        chosen, known = await named(client, folder), watched_here(await client.folders())
        refuse_overlap(chosen, known)
        before = next((row["watch"]["id"] for row in known if row["prefix"] == chosen.prefix), None)
        this = await Round.begin(client, chosen, DigestCache())
        await claim(client, chosen, this.claim.mounts or this.mounts, this.claim.owner)
        own, url = (await client.own_rights())["tags"], load_config().engine_url
        tags = chosen.tags if not own or set(own) & set(chosen.tags) else (*chosen.tags, own[0])
        record = WatchedFolder(
            *(before or uuid4().hex, str(chosen.path), chosen.prefix, url, tags, chosen.exclude, chosen.delete),
            follow_links=chosen.follow_links,
        )
        await client.watch_folder(
            record.id, prefix=record.prefix, machine=machine_id(), tags=list(tags), delete=record.delete
        )
        return record, len(this.selection.files)

    record, files = call_async(register)
    save_record(record)
    remove_others(record)
    is_watched = call_async(lambda client: wait_until_seen(client, record.prefix))
    if json:
        output.print_json({"id": record.id, "path": record.path, "prefix": record.prefix, "is_watched": is_watched})
        return exit_codes.OK
    output.print_line(f"kb watches {record.path} as {record.name}: {count_files(files)}.")
    if not is_watched:
        output.print_error(NO_PROGRAM)
    return exit_codes.OK


def add_both(folder: Folder, new_notes: str | None, *, json: bool) -> int:
    prefix, is_watched = keep(folder, new_notes)
    if json:
        output.print_json({"path": str(folder.path), "prefix": prefix, "is_watched": is_watched})
        return exit_codes.OK
    output.print_line(f"kb now keeps {folder.path} in sync as {prefix.rstrip('/')}, in both directions.")
    return exit_codes.OK


def sync_both(folder: Folder, *, yes: bool, json: bool) -> int:
    """Have the engine keep a folder in both directions, and wait until both sides are the same."""
    whole = str(resolved(folder.path))
    known = watched_here(call(lambda client: client.folders()))
    kept = next((row for row in known if row["watch"]["both"] and row["path"] == whole), None)
    if kept is None:
        prefix, _ = keep(folder, None)
        kept = next(row for row in fetch_watched() if row["prefix"] == prefix)
    return look_now(kept, yes=yes, json=json)


def keep(folder: Folder, new_notes: str | None) -> tuple[str, bool]:
    """Have the engine keep a folder in both directions, and forget how this machine watched it.

    Returns:
        The beginning of the paths of its documents, and whether the engine has begun.
    """
    if folder.follow_links:
        raise UsageError("--follow-links cannot be used with --both: kb never writes outside the folder.")
    folder.check_is_there()

    async def register(client: EngineClient) -> str:
        chosen, known = await named(client, folder), watched_here(await client.folders())
        refuse_overlap(chosen, known)
        before: dict[str, Any] = next((row["watch"] for row in known if row["prefix"] == chosen.prefix), {})
        held = await look_up(client, chosen)
        if held.doubt:
            raise held.doubt
        await claim(client, chosen, held.mounts or describe_mounts(chosen.path), held.owner)
        await client.watch_folder(
            before.get("id") or uuid4().hex,
            prefix=chosen.prefix,
            machine=machine_id(),
            tags=list(chosen.tags or before.get("tags", ())),
            exclude=list(chosen.exclude),
            new_notes=new_notes,
            both=True,
            delete=True,
            place=place_of(chosen.path),
        )
        return chosen.prefix

    prefix = call_async(register)
    for record in load_records().values():
        if (record.prefix, record.engine_url) == (prefix, load_config().engine_url):
            remove_record(record)
    return prefix, call_async(lambda client: wait_until_seen(client, prefix))


def fetch_watched() -> list[dict[str, Any]]:
    return [row for row in call(lambda client: client.folders())["folders"] if row["watch"]]


def watched_here(known: dict[str, Any]) -> list[dict[str, Any]]:
    mine = machine_id()
    return [row for row in known["folders"] if row["watch"] and is_from_here(row, mine)]


def refuse_overlap(folder: Folder, known: list[dict[str, Any]]) -> None:
    """Refuse a folder that kb watches under another name, and one inside or around a watched folder."""
    whole = resolved(folder.path)
    for row in known:
        other, name = Path(row["path"]), row["prefix"].rstrip("/")
        if other == whole and row["prefix"] != folder.prefix:
            raise UsageError(
                f"kb is already watching {other} as {name}. To use another name, first run 'kb watch remove {name}'."
            )
        if other in whole.parents:
            raise UsageError(f"kb is already watching {whole} as part of {other} (named {name}).")
        if whole in other.parents:
            raise UsageError(
                f"{whole} contains {other}, which kb is already watching as {name}. To watch all of it, first run"
                f" 'kb watch remove {name}'."
            )


def remove_others(record: WatchedFolder) -> None:
    known = {row["watch"]["id"] for row in fetch_watched()}
    for other in load_records().values():
        if is_alike(other, record) and other.id not in known:
            remove_record(other)


def is_alike(one: WatchedFolder, other: WatchedFolder) -> bool:
    """Return whether two records are for the same folder, name and engine."""
    return (one.path, one.prefix, one.engine_url) == (other.path, other.prefix, other.engine_url)


async def wait_until_seen(client: EngineClient, prefix: str) -> bool:
    """Return whether a program watches the folder, after a few seconds at most."""
    for _ in range(START_SECONDS * 2):
        rows = (await client.folders())["folders"]
        if any(row["watch"]["state"] != "new" for row in rows if row["watch"] and row["prefix"] == prefix):
            return True
        await asyncio.sleep(0.5)
    return False


def list_watched(*, json: bool) -> int:
    rows = fetch_watched()
    known = {row["watch"]["id"] for row in rows}
    unknown = [record for record in load_records().values() if record.id not in known]
    if json:
        others = [{"id": record.id, "path": record.path, "engine_url": record.engine_url} for record in unknown]
        output.print_json({"folders": rows, "unknown": others})
        return exit_codes.OK
    output.print_list({"folders": rows}, "folders", COLUMNS, NOTHING, json=False)
    for row in rows:
        print_faults(row)
    for record in unknown:
        output.print_error(f"{record.path} was added to {record.engine_url}, so this engine does not know it.")
    return exit_codes.OK


def print_faults(row: dict[str, Any]) -> None:
    watch, name = row["watch"], row["prefix"].rstrip("/")
    result = watch["result"] or {"failures": [], "failed": 0, "kept": []}
    for reason in filter(None, [watch["error"], *result["kept"]]):
        output.print_error(f"{name}: {reason}")
    for failure in result["failures"]:
        output.print_error(f"{name}: {failure['path']}: {failure['error']}")
    if (more := result["failed"] - len(result["failures"])) > 0:
        output.print_error(f"{name}: {more} more failed files")


def sync_now(word: str | None, *, yes: bool, json: bool) -> int:
    """Sync watched folders of this machine in this terminal, and report to the engine."""
    rows = fetch_watched()
    known = {row["watch"]["id"] for row in rows}
    kept = [row for row in rows if row["watch"]["both"] and word in (None, row["prefix"].rstrip("/"), row["path"])]
    if kept:
        return max(look_now(row, yes=yes, json=json) for row in kept)
    records = [record for record in load_records().values() if record.id in known]
    chosen = records if word is None else [found(word, records)]
    if not chosen:
        raise UsageError("No folder on this machine is watched for this engine. 'kb watch add FOLDER' adds one.")
    if json and len(chosen) > 1:
        raise UsageError("--json works with one folder only: 'kb watch now FOLDER --json'.")
    return max(sync_record(record, yes=yes, json=json) for record in chosen)


def look_now(row: dict[str, Any], *, yes: bool, json: bool) -> int:
    """Have the engine look at a folder that it keeps itself, and return the exit code."""
    watch_id, name = row["watch"]["id"], row["prefix"].rstrip("/")

    async def look(client: EngineClient) -> dict[str, Any]:
        if yes:
            await client.decide_about_missing_files("delete", name)
        row = await client.sync_now(watch_id)
        while row["watch"]["asked_at"] or row["watch"]["is_syncing"]:
            await asyncio.sleep(0.5)
            row = next(
                row for row in (await client.folders())["folders"] if row["watch"] and row["watch"]["id"] == watch_id
            )
        return row

    row = call_async(look)
    if json:
        output.print_json(row)
    else:
        output.print_line(f"{name}: {outcome(row)}")
        print_faults(row)
    result = row["watch"]["result"]
    return exit_codes.FAILURE if row["watch"]["error"] or result["failed"] or result["kept"] else exit_codes.OK


def sync_record(record: WatchedFolder, *, yes: bool, json: bool) -> int:
    """Run one round of a watched folder, and return the exit code."""

    async def sync(client: EngineClient) -> Any:  # noqa: ANN401 - TYPE_CHECKING
        folder = record.folder(is_sure=yes, is_watched=False)
        async with alone(record.lock, on_wait=lambda: output.print_error("waiting for another sync to finish")):
            try:
                result = await sync_folder(client, folder, DigestCache(), quiet=json)
            except typer.TyperException as error:
                await client.report_round(record.id, error=error.format_message())
                raise
        await client.report_round(record.id, result=described(result, folder))
        return result

    result = call_async(sync)
    print_result(result, json=json)
    return exit_code(result)


def found(word: str, records: list[WatchedFolder]) -> WatchedFolder:
    """Return the record of a folder, by its path or its name."""
    path, name = absolute(Path(word).expanduser()), composed(word).rstrip("/")
    for record in records:
        if record.name == name or Path(record.path) == path:
            return record
    for record in records:
        if resolved(Path(record.path)) == resolved(path):
            return record
    names = ", ".join(record.name for record in records)
    raise UsageError(f"This machine is not watching {word} for this engine. It is watching {names or 'no folder'}.")


def remove(word: str, *, json: bool) -> int:
    """Stop watching a folder: first on this machine, then in the engine."""
    own = load_config().engine_url
    records = sorted(load_records().values(), key=lambda record: record.engine_url != own)
    try:
        record = found(word, records)
    except UsageError as error:
        return remove_elsewhere(word, error, json=json)
    alike = [other for other in records if is_alike(other, record)]
    for other in alike:
        remove_record(other)
    try:
        for other in alike:
            with suppress(NotFound):
                call(partial(EngineClient.stop_watching, watch_id=other.id))
    except KbError as error:
        raise type(error)(
            f"kb no longer watches {record.path}, but the engine still lists it. {error.detail}"
        ) from None
    return print_removed(record.path, json=json)


def remove_elsewhere(word: str, refusal: UsageError, *, json: bool) -> int:
    """Forget a watch that another machine had, or of which this machine has no record.

    Raises:
        UsageError: the engine does not know it either.
    """
    name = composed(word).rstrip("/")
    row = next((row for row in fetch_watched() if name in (row["prefix"].rstrip("/"), row["path"])), None)
    if row is None:
        raise refusal
    call(lambda client: client.stop_watching(row["watch"]["id"]))
    return print_removed(f"{row['path']} on {row['host']}", json=json)


def print_removed(path: str, *, json: bool) -> int:
    if json:
        output.print_json({"removed": path})
    else:
        output.print_line(f"kb no longer watches {path}. Its documents stay.")
    return exit_codes.OK


def run(*, is_child: bool) -> int:
    if is_child:
        end_with_parent()
    asyncio.run(Watcher(load_config().engine_url).run())
    return exit_codes.OK


def outcome(row: dict[str, Any]) -> str:
    return outcome_of(row["watch"]["result"]) if row["watch"]["result"] else ""


def state(row: dict[str, Any]) -> str:
    watch = row["watch"]
    if watch["state"] == "stopped":
        return f"not running since {output.format_time(watch['seen_at'])}"
    said = "not running yet" if watch["state"] == "new" else str(watch["state"])
    return f"{said}, both ways" if watch["both"] else said


COLUMNS: output.Columns = {
    "NAME": lambda row: row["prefix"].rstrip("/"),
    "FOLDER": lambda row: row["path"],
    "MACHINE": lambda row: row["host"],
    "STATE": state,
    "LAST SYNC": lambda row: output.format_time(row["watch"]["synced_at"]) or "never",
    "RESULT": outcome,
}
NOTHING = "kb is not watching any folders; add one with 'kb watch add FOLDER'"
