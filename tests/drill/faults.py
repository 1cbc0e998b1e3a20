"""The faults of the drill: what happens, what notices it, and what an administrator then types.

`docs/reference/faults.md` shows them, and `make drill` tries each of them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import apsw

from tests.drill.failing_disk import fail_at_each_change
from tests.support.eventually import eventually

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
BOTH = (SQLITE, POSTGRES)


@dataclass(frozen=True)
class Fault:
    """A fault. After its remedy, everything is there again.

    Args:
        kind: the chapter that it is in.
        what: what happens.
        do: does it in a `Place`.
        notices: the command that notices it; None if whoever meets it is told at once.
        says: a part of what is said; empty if there is nothing to say.
        remedy: the lines that an administrator then types.
        stores: the databases that can have this fault.
        why: what is true of it without a remedy.
    """

    kind: str
    what: str
    do: Callable[[object], object]
    notices: str | None
    says: str
    remedy: tuple[str, ...] = ()
    stores: tuple[str, ...] = (SQLITE,)
    why: str = ""


def flip(path, at=None):
    """Flip a bit of a file, by default in its middle."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 if at is None else at] ^= 4
    path.write_bytes(raw)


def flip_word(path, word):
    """Flip a bit of each occurrence of a word."""
    raw = bytearray(path.read_bytes())
    places = [found.start() for found in re.finditer(re.escape(word), raw)]
    assert places, word
    for place in places:
        raw[place] ^= 4
    path.write_bytes(raw)


def flip_table(name, place):
    """Flip a bit of the last row of a table's first page."""
    path = place.data / "kb.db"
    with closing(apsw.Connection(str(path))) as connection:
        size = connection.pragma("page_size")
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get
    flip(path, page * size - 6)


def cut(path, keep=0.5):
    """Cut a file off, as an interrupted copy does."""
    os.truncate(path, int(path.stat().st_size * keep))


def remove(path):
    path.unlink()


def write(path):
    path.write_text("{not JSON")


def newest(pattern, change):
    """Change the file that fits a pattern, or the newest of them."""
    return lambda place: change(max(path for path in place.folder.glob(pattern) if path.is_file()))


def closed(name, mode=0o500):
    """Take the permission to change a file or folder away."""

    def do(place):
        place.is_closed = True
        (place.folder / name).chmod(mode)

    return do


def in_model(name):
    """Flip a bit in the model, of which this place gets a copy."""

    def do(place):
        place.changes["KB_MODEL_DIR"] = shutil.copytree(place.model, place.folder / "model", copy_function=os.symlink)
        path = place.folder / "model" / name
        path.unlink()
        shutil.copyfile(place.model / name, path)
        flip(path)

    return do


def newer(place):
    """Make the database one of a newer kb."""
    with closing(apsw.Connection(str(place.data / "kb.db"))) as connection:
        connection.execute("PRAGMA user_version = 999")


def older_over_newer(place):
    """Copy a database of an earlier day over that of an engine that was killed."""
    earlier = (place.data / "kb.db").read_bytes()
    file = str(place.data / "kb.db")
    with place.served() as server, closing(apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)) as reader:
        reader.execute("BEGIN; SELECT * FROM documents")  # kb cannot empty the log meanwhile
        place.call("add_note", text="What is in the log.", server=server)
        server.kill()
    (place.data / "kb.db").write_bytes(earlier)


def clock_jumps(by):
    """Let the machine's clock jump by so many seconds while versions and deleted documents are kept for five days."""

    def do(place):
        jump = {"KB_TEST_CLOCK": f"0:{by}", "KB_BIN_DAYS": "5", "KB_HISTORY_DAYS": "5"}
        with place.served(("tests.crash.serve", "serve"), **jump) as server:
            place.said = str(place.call("status", server=server)["attention"])

    return do


def at_each_change(action, error):
    """Let the disk fail at each change that an action makes; it says itself what was lost."""

    def do(place):
        folder = place.folder / "disk"
        folder.mkdir()
        _, place.said = fail_at_each_change(place.library, place.model, action, error, folder, place.every)

    return do


def server_ends(place):
    """End all processes of PostgreSQL while notes come in, and let it recover."""
    from tests.support.postgres import crash

    place.has_more = True
    with place.served() as server:
        notes = [place.call("add_note", text=f"Note {number}.", server=server) for number in range(3)]
        crash(place.settings["KB_DATABASE_URL"])
        notes.append(eventually("the engine goes on", lambda: added(place, server)))
        found = [place.call("document", note["document_id"], server=server) for note in notes]
        place.said = f"{sum(isinstance(each, dict) for each in found)} notes are there"


def added(place, server):
    """A note that was acknowledged, or None."""
    note = place.call("add_note", text="A note of afterwards.", server=server)
    return note if isinstance(note, dict) else None


ROT = "Bits flip"
ROTTEN = [
    Fault(
        ROT,
        "in the header of the database",
        newest("data/kb.db", partial(flip, at=3)),
        "kb doctor",
        "is damaged (file is not a database)",
        ("kb backup restore",),
    ),
    Fault(
        ROT,
        "in the text of a note",
        newest("data/kb.db", partial(flip_word, word=b"counts every ship")),
        "kb doctor",
        "the text of note 1 does not match its content_hash",
        ("kb backup restore",),
    ),
    Fault(
        ROT,
        "in a table of the database",
        partial(flip_table, "chunks_document"),
        "kb doctor",
        "database pages: row",
        ("kb doctor --repair",),
    ),
    Fault(
        ROT,
        "in the index of words",
        partial(flip_table, "chunks_fts_docsize"),
        "kb doctor",
        "passages have no index entry",
        ("kb doctor --repair",),
    ),
    Fault(
        ROT,
        "in the vectors",
        partial(flip_table, "chunks_vec_rowids"),
        "kb doctor",
        "passages have no vector",
        ("kb doctor --repair",),
    ),
    Fault(
        ROT,
        "in a kept file",
        newest("data/files/??/*", flip),
        "kb doctor",
        "was changed or is damaged",
        ("kb backup restore",),
    ),
    Fault(
        ROT,
        "in the file of keys",
        newest("data/keys.json", partial(flip, at=0)),
        "kb serve",
        "keys.json, the key file, cannot be read",
        ("rm data/keys.json", "kb import export"),
    ),
    Fault(
        ROT,
        "in the saved settings",
        lambda place: write(place.data / "settings.json"),
        "kb serve",
        "settings.json: it cannot be read",
        ("rm data/settings.json",),
        BOTH,
    ),
    Fault(
        ROT,
        "in the record of the clock",
        newest("data/clock.json", write),
        "kb serve",
        "",
        (),
        BOTH,
        "kb takes the time from the machine again",
    ),
    Fault(
        ROT,
        "in the weights of the model",
        in_model("model.onnx.data"),
        "kb serve",
        "it is damaged, or was made by another version",
        ("rm -r model", 'cp -r "$MODEL" model'),
        BOTH,
    ),
    Fault(
        ROT,
        "in the tokenizer of the model",
        in_model("tokenizer.json"),
        "kb serve",
        "it is damaged, or was made by another version",
        ("rm -r model", 'cp -r "$MODEL" model'),
        BOTH,
    ),
    Fault(
        ROT,
        "in a file of the backups",
        newest("backups/objects/??/*", flip),
        "kb backup verify",
        "'kb backup' copies it again for all backups",
        ("kb backup",),
    ),
    Fault(
        ROT,
        "in the database of a backup",
        newest("backups/2*/kb.db", flip),
        "kb backup verify",
        "make a new backup with 'kb backup'",
        ("kb backup",),
    ),
    Fault(
        ROT,
        "in the manifest of a backup",
        newest("backups/2*/manifest.json", flip),
        "kb backup verify",
        "cannot use the manifest of the backup",
        ("kb backup",),
    ),
    Fault(
        ROT,
        "in an export",
        newest("export/documents.jsonl", flip),
        "kb import export",
        "documents.jsonl",
        ("rm -r export", "kb export export"),
        BOTH,
    ),
    Fault(
        ROT,
        "in a file of an export",
        newest("export/files/**/*", flip),
        "KB_DATA_DIR=$PWD/new kb import export",
        "damaged",
        ("rm -r export", "kb export export"),
    ),
]

PERMISSION = "kb has no permission to"
FORBIDDEN = [
    Fault(
        PERMISSION,
        "write to the data folder",
        closed("data"),
        "kb serve",
        "Its permissions forbid it: run 'chmod u+rwX",
        ("chmod u+rwX data",),
        BOTH,
    ),
    Fault(
        PERMISSION,
        "read the data folder",
        closed("data", 0),
        "kb serve",
        "Permission denied",
        ("chmod u+rwX data",),
        BOTH,
    ),
    Fault(
        PERMISSION,
        "write to the database",
        closed("data/kb.db", 0o400),
        "kb serve",
        "Its permissions forbid it: run 'chmod u+rwX",
        ("chmod u+rwX data/kb.db",),
    ),
    Fault(
        PERMISSION,
        "read the keys",
        closed("data/keys.json", 0),
        "kb serve",
        "Its permissions forbid it: run 'chmod u+rwX",
        ("chmod u+rwX data/keys.json",),
    ),
    Fault(
        PERMISSION,
        "write to the folder of kept files",
        closed("data/files"),
        "kb doctor",
        "kb cannot write to",
        ("chmod u+rwX data/files",),
    ),
    Fault(
        PERMISSION,
        "write to the folder of waiting files",
        closed("data/staging"),
        "kb serve",
        "Its permissions forbid it: run 'chmod u+rwX",
        ("chmod u+rwX data/staging",),
    ),
    Fault(
        PERMISSION,
        "write to the folder of backups",
        closed("backups"),
        "kb backup",
        "kb cannot write the backup",
        ("chmod u+rwX backups", "kb backup"),
    ),
    Fault(
        PERMISSION,
        "write to the folder of backups, at the start",
        closed("backups"),
        "kb serve",
        "Its permissions forbid it: run 'chmod u+rwX",
        ("chmod u+rwX backups",),
    ),
    Fault(
        PERMISSION,
        "read the files of the backups",
        closed("backups/objects", 0),
        "kb backup verify",
        "is missing",
        ("chmod u+rwX backups/objects",),
    ),
]

HALF = "A copy is incomplete or of another day"
INCOMPLETE = [
    Fault(
        HALF,
        "a database of an earlier day, copied over one with a log",
        older_over_newer,
        "kb serve",
        "kb.db was replaced, but",
        ("mkdir aside", "mv data/kb.db-wal data/kb.db-shm aside"),
        why="the log stays in the folder",
    ),
    Fault(
        HALF,
        "the database without the files",
        lambda place: shutil.rmtree(place.data / "files"),
        "kb doctor",
        "1 documents are missing their stored file",
        ("kb backup restore",),
    ),
    Fault(
        HALF,
        "the files without the database",
        newest("data/kb.db", remove),
        "kb doctor",
        "is missing. If it was lost",
        ("kb backup restore",),
    ),
    Fault(HALF, "half of the database", newest("data/kb.db", cut), "kb serve", "is damaged", ("kb backup restore",)),
    Fault(
        HALF,
        "an empty file as the database",
        newest("data/kb.db", partial(cut, keep=0)),
        "kb doctor",
        "has schema version 0",
        ("kb backup restore",),
    ),
    Fault(
        HALF,
        "the data folder without the keys",
        newest("data/keys.json", remove),
        "kb backup restore",
        "a backup contains no keys with rights",
        ("kb import export",),
    ),
    Fault(
        HALF,
        "half of a kept file",
        newest("data/files/??/*", cut),
        "kb doctor",
        "was changed or is damaged",
        ("kb backup restore",),
    ),
    Fault(
        HALF,
        "half of a file of the backups",
        newest("backups/objects/??/*", cut),
        "kb backup",
        "damaged files in the backup folder were copied again",
        (),
        why="each backup heals the earlier ones",
    ),
    Fault(
        HALF,
        "a backup without one of its files",
        newest("backups/objects/??/*", remove),
        "kb backup verify",
        "is missing; 'kb backup' copies it again",
        ("kb backup",),
    ),
    Fault(
        HALF,
        "half of the database of a backup",
        newest("backups/2*/kb.db", cut),
        "kb backup restore",
        "Choose another backup",
        ("kb backup",),
    ),
    Fault(
        HALF,
        "a backup without its manifest",
        newest("backups/2*/manifest.json", remove),
        "kb backup verify",
        "cannot use the manifest of the backup",
        ("kb backup",),
    ),
    Fault(
        HALF,
        "half of an archive",
        lambda place: (place.run("kb backup backup.tar"), cut(place.folder / "backup.tar")),
        "kb backup verify backup.tar",
        "backup.tar",
        ("rm backup.tar", "kb backup backup.tar"),
    ),
    Fault(
        HALF,
        "half of an export",
        newest("export/documents.jsonl", cut),
        "kb import export",
        "documents.jsonl, line",
        ("rm -r export", "kb export export"),
        BOTH,
    ),
    Fault(
        HALF,
        "an export without one of its files",
        newest("export/files/**/*", remove),
        "KB_DATA_DIR=$PWD/new kb import export",
        "contains 0 of its 1 files",
        ("rm -r export", "kb export export"),
    ),
    Fault(
        HALF,
        "half of a dump",
        newest("dump", cut),
        'psql "$KB_DATABASE_URL" -c "DROP SCHEMA kb CASCADE" && pg_restore --single-transaction --dbname "$KB_DATABASE_URL" dump',
        "pg_restore: error",
        ("kb import export",),
        (POSTGRES,),
    ),
    Fault(HALF, "a database of a newer kb", newer, "kb serve", "Use a newer version", ("kb backup restore",)),
    Fault(
        HALF,
        "a database of a newer kb, and backups of it",
        lambda place: (newer(place), place.run("kb backup")),
        "kb backup restore",
        "A newer version of kb made the backup",
        ('kb backup restore "$(ls -d backups/2* | tail -n 2 | head -n 1)"',),
    ),
]

CLOCK = "The machine's clock"
CLOCKS = [
    Fault(
        CLOCK,
        f"jumps by {days} days",
        clock_jumps(days * 86_400),
        None,
        f"{abs(days):,} days {way} than expected: nothing expires",
        (),
        BOTH,
        "kb keeps its own time",
    )
    for days, way in ((400, "later"), (-400, "earlier"), (20, "later"))
]

DISK = {"EIO": "The disk fails", "ENOSPC": "The disk is full", "KILL": "kb is killed"}
DOES = {
    "note": "a note",
    "sync": "a sync",
    "backup": "a backup",
    "restore": "a restore",
    "migration": "a migration",
    "import": "an import",
    "keys": "a new key",
}
SAYS = {"EIO": "disk I/O error", "ENOSPC": "disk is full"}
SYSTEM = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}
"""What the operating system says, where kb writes no database."""

DISKS = [
    Fault(
        kind,
        f"at any change that {name} makes",
        at_each_change(action, error),
        None,
        (SYSTEM if action in ("keys", "restore") else SAYS).get(error, ""),
        why="what kb acknowledged is there, and the rest is there wholly or not at all",
    )
    for error, kind in DISK.items()
    for action, name in DOES.items()
]

SERVERS = [
    Fault(
        "PostgreSQL",
        "ends at once and recovers",
        server_ends,
        None,
        "4 notes are there",
        (),
        (POSTGRES,),
        why="the engine connects again",
    ),
]

FAULTS = [*ROTTEN, *FORBIDDEN, *INCOMPLETE, *CLOCKS, *DISKS, *SERVERS]
