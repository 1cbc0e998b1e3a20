"""Report the results of add and sync."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from kb.folders.deletions import Withheld
from kb.folders.left_out import LeftOut, left_out, number_left_out
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.error_wording import rephrase
from kb_cli.sync.file_item import FileItem
from kb_cli.sync.file_selection import FileSelection

ACTS: Final = ("added", "changed", "moved", "deleted")
MANY_FAILURES: Final = 20
EXAMPLES: Final = 3


@dataclass
class SyncResult:
    """The result of a round."""

    selection: FileSelection
    items: list[FileItem]
    deleted: list[str] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    """Documents that stay although their file is gone."""
    emptied: list[str] = field(default_factory=list)
    """Folders that are suddenly empty."""

    @property
    def failed(self) -> list[FileItem]:
        """The files that were not added."""
        return [item for item in self.items if item.error]

    @property
    def is_news(self) -> bool:
        """Whether anything changed."""
        return bool(self.deleted) or any(item.is_news for item in self.items)


def needs_yes(result: SyncResult) -> bool:
    """Return whether documents stay until the user confirms their deletion with --yes."""
    return any(withheld.needs_yes for withheld in result.withheld)


def exit_code(result: SyncResult) -> int:
    if needs_yes(result):
        return exit_codes.USAGE
    return exit_codes.FAILURE if result.withheld or any(item.is_news for item in result.failed) else exit_codes.OK


def unreadable_items(selection: FileSelection) -> list[FileItem]:
    """Return the folders that cannot be listed, as failed items."""
    error = "kb cannot list this folder; check its permissions"
    return [FileItem(str(folder), folder.as_posix(), error=error) for folder in selection.unreadable]


def print_result(result: SyncResult, *, json: bool) -> None:
    print_failures([item for item in result.failed if item.is_news])
    print_withheld(result.withheld)
    if json:
        done = {"files": [item.to_json() for item in result.items], "deleted": result.deleted}
        output.print_json(done | withheld_json(result))
    else:
        output.print_line(summarize(result.items, result.selection, deleted=len(result.deleted), waited=True))


def print_plan(plan: SyncResult, *, json: bool) -> None:
    acts: dict[str, list[str]] = {act: [] for act in ACTS}
    for item in filter(is_done, plan.items):
        acts[item.act].append(f"{item.moved_from} -> {item.source_path}" if item.moved_from else item.source_path)
    acts["deleted"] = plan.deleted
    print_withheld(plan.withheld)
    if json:
        output.print_json(acts | withheld_json(plan))
        return
    print_failures([item for item in plan.failed if item.is_news])
    rows = [(act, path) for act, paths in acts.items() for path in paths]
    if rows:
        output.print_table(("CHANGE", "SOURCE PATH"), rows)
    summary = summarize(plan.items, plan.selection, deleted=len(plan.deleted), waited=True)
    output.print_line(f"dry run, kb changed nothing: {summary}")


def print_withheld(withheld: Iterable[Withheld], addition: str = "") -> None:
    """Print the documents that stay although their file is gone, and the reasons."""
    for group in withheld:
        output.print_error(f"{group.reason} {addition}".rstrip())


def withheld_json(result: SyncResult) -> dict[str, list[dict[str, object]]]:
    """Return the --json fields for documents that stay although their file is gone, if any."""
    rows: list[dict[str, object]] = [{"reason": group.reason, "paths": list(group.paths)} for group in result.withheld]
    return {"withheld": rows} if rows else {}


def print_changes(result: SyncResult, prefix: str) -> None:
    """Print the changes of a round, one line per file with the time; paths without their `prefix`."""
    print_failures([item for item in result.failed if item.is_news])
    print_withheld(result.withheld, "Until then, kb deletes nothing there.")
    time = datetime.now().astimezone().strftime("%H:%M:%S")
    for item in result.items:
        if is_done(item):
            path = item.source_path.removeprefix(prefix)
            moved = f"{item.moved_from.removeprefix(prefix)} to {path}" if item.moved_from else path
            output.print_line(f"{time} {item.act} {moved}")
    for path in result.deleted:
        output.print_line(f"{time} deleted {path.removeprefix(prefix)}")


def print_failures(failed: Sequence[FileItem]) -> None:
    """Print the failed files with their errors; if there are many, only the number for each error."""
    if len(failed) <= MANY_FAILURES:
        for item in failed:
            output.print_error(f"{item.path}: {rephrase(item.error or '')}")
        return
    by_reason: dict[str, list[FileItem]] = {}
    for item in failed:
        by_reason.setdefault(rephrase(item.error or ""), []).append(item)
    for reason, items in by_reason.items():
        names = ", ".join(item.path for item in items[:EXAMPLES])
        output.print_error(f"{count_files(len(items))}: {reason}: {names}" + (", …" if len(items) > EXAMPLES else ""))


def summarize(items: Sequence[FileItem], selection: FileSelection, *, deleted: int = 0, waited: bool) -> str:
    done = Counter(item.act if waited or item.moved_from else "queued" for item in items if is_done(item))
    failed = sum(bool(item.error) and not item.is_known_error for item in items)
    known = sum(item.is_known_error for item in items)
    unchanged = sum(item.is_unchanged for item in items)
    parts = [f"{count} {act}" for act, count in sorted(done.items())]
    parts += [f"{deleted} deleted"] if deleted else []
    groups = groups_left_out(selection)
    partly = sum(item.is_partly_read for item in items)
    parts += [f"{partly} only partly read ('kb jobs --status done' shows the missing parts)"] if partly else []
    if unchanged:
        is_all = not (parts or failed or known or groups)
        parts.append("all up to date" if is_all else f"{unchanged} up to date")
    parts += [f"{count} empty" for count in [sum(item.is_empty for item in items)] if count]
    parts += [f"{known} unreadable ('kb jobs --status failed' shows the reasons)"] if known else []
    parts += [f"{failed} failed"] if failed else []
    summary = f"{count_files(len(items))}: {', '.join(parts or ['nothing to do'])}"
    if not groups:
        return summary
    reasons = ", ".join(f"{group.reason}: {group.count}" for group in groups)
    return f"{summary}; {number_left_out(sum(group.count for group in groups))} ({reasons})"


def groups_left_out(selection: FileSelection) -> list[LeftOut]:
    """Return the files of folders that are not sent, by reason."""
    by_suffix: dict[str, list[str]] = {}
    for path in selection.passed_over:
        by_suffix.setdefault(path.suffix.lower(), []).append(str(path))
    unread = [LeftOut(f"kb doesn't read {suffix} files", paths) for suffix, paths in sorted(by_suffix.items())]
    elsewhere = LeftOut("not on this disk, only online", list(map(str, selection.elsewhere)))
    links = LeftOut("links to files outside the folder, without --follow-links", list(map(str, selection.outside)))
    return left_out([*unread, elsewhere, links], selection.ignored)


def is_done(item: FileItem) -> bool:
    return item.is_news and not item.error


def count_files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
