"""The faults that `make drill` tries, with what notices each and its remedy."""

from __future__ import annotations

from tests.docs.reference import markdown
from tests.drill.faults import BOTH, FAULTS, Fault

INTRO = (
    "Disks lose bits, fill up and fail; copies stay half finished, and clocks jump. `make drill` does all of this to kb,"
    " one fault after the other, over SQLite and over PostgreSQL, and then checks that every document, version, key and"
    " file is there again."
)
LOST = (
    "As long as you have a backup from before, you lose nothing through any of these faults: each remedy below brings back"
    " everything that kb had acknowledged. The folders here are `data` (`KB_DATA_DIR`), `backups` (`KB_BACKUP_DIR`),"
    " `dump` (a dump by `pg_dump`) and `export` (a folder that `kb export` wrote). Stop the engine before a remedy."
)
UNSEEN = (
    "Two things go unnoticed. SQLite has no checksums, so a flipped bit in a title or a tag shows only when you read"
    " it. A flipped bit in the last changes that kb wrote before it was killed (`kb.db-wal`) looks like an interrupted"
    " write, so these changes are lost. Put the data on a file system with checksums, such as ZFS or Btrfs, if that"
    " worries you."
)


def page() -> str:
    """Return a table for each kind of fault."""
    kinds = list(dict.fromkeys(fault.kind for fault in FAULTS))
    tables = (part(kind, [fault for fault in FAULTS if fault.kind == kind]) for kind in kinds)
    return markdown.page("# Faults and remedies", INTRO, LOST, *tables, "## What nothing notices", UNSEEN)


def part(kind: str, faults: list[Fault]) -> str:
    """Return the chapter of a kind of fault."""
    rows = ((fault.what, store(fault), noticed(fault), remedy(fault)) for fault in faults)
    return markdown.page(
        f"## {kind}", markdown.table(("What happens", "Database", "What tells you", "What you do"), rows)
    )


def store(fault: Fault) -> str:
    return "any" if fault.stores == BOTH else ", ".join(fault.stores)


def noticed(fault: Fault) -> str:
    """Return who tells of a fault, and in which words."""
    words = f"“{fault.says}”" if fault.says else ""
    command = markdown.code(fault.notices) if fault.notices else "the program that meets it"
    return f"{command}: {words}" if words else "nothing, because nothing is lost"


def remedy(fault: Fault) -> str:
    """Return what to type, or why there is nothing to do."""
    return ", then ".join(map(markdown.code, fault.remedy)) or f"nothing: {fault.why}"
