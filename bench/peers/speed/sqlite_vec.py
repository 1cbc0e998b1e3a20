"""sqlite-vec's vectors and FTS5 in one file, as their guides put them together."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from bench.peers.speed.passages import CANDIDATES, TAGS, TOP, fused

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from bench.peers.speed.passages import Passages, Question

apsw = import_module("apsw")
extension = import_module("sqlite_vec")

SCHEMA: Final = (
    f"CREATE TABLE passages (id INTEGER PRIMARY KEY, {', '.join(TAGS)}, text TEXT)",
    "CREATE VIRTUAL TABLE words USING fts5 (text, content=passages, content_rowid=id, tokenize='porter unicode61')",
    "CREATE VIRTUAL TABLE vectors USING vec0 (id INTEGER PRIMARY KEY, embedding FLOAT[384],"
    f" {', '.join(f'{tag} BOOLEAN' for tag in TAGS)})",
)
MAPPED: Final = 1 << 30


def connect(folder: Path) -> Any:  # noqa: ANN401 - apsw's
    """Return a connection."""
    connection = apsw.Connection(str(folder / "passages.db"))
    connection.enable_load_extension(enable=True)
    connection.load_extension(extension.loadable_path())
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute(f"PRAGMA mmap_size = {MAPPED}").fetchall()
    return connection


def build(passages: Passages, folder: Path) -> None:
    """Write the passages."""
    connection = connect(folder)
    for statement in SCHEMA:
        connection.execute(statement)
    tags = [passages.tags[tag].tolist() for tag in TAGS]
    with connection:
        rows = zip(range(len(passages.texts)), *tags, passages.texts, strict=True)
        connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
        rows = zip(range(len(passages.texts)), map(bytes, passages.vectors), *tags, strict=True)
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", rows)
    connection.close()


class Engine:
    """See `passages.Engine`."""

    def __init__(self, folder: Path) -> None:
        self._connection = connect(folder)

    def hybrid(self, question: Question) -> list[tuple[int, str]]:
        """Return the best of both, fused by rank."""
        return self._read(fused([self._by_words(question), self._by_meaning(question, CANDIDATES)]))

    def nearest(self, question: Question) -> list[tuple[int, str]]:
        """Return the nearest."""
        return self._read(self._by_meaning(question, TOP))

    def _by_meaning(self, question: Question, top: int) -> list[int]:
        where = f" AND {question.tag} = 1" if question.tag else ""
        sql = f"SELECT id FROM vectors WHERE embedding MATCH ? AND k = ?{where} ORDER BY distance"
        return [number for (number,) in self._connection.execute(sql, (bytes(question.vector), top))]

    def _by_words(self, question: Question) -> list[int]:
        # Otherwise it would look the words up for each passage that has the tag.
        tagged = f" CROSS JOIN passages ON id = words.rowid AND {question.tag}" if question.tag else ""
        sql = f"SELECT words.rowid FROM words{tagged} WHERE words MATCH ? ORDER BY rank LIMIT ?"
        words = " OR ".join(f'"{word}"' for word in question.words)
        return [number for (number,) in self._connection.execute(sql, (words, CANDIDATES))]

    def _read(self, numbers: list[int]) -> list[tuple[int, str]]:
        sql = "SELECT text FROM passages WHERE id = ?"
        return [(number, self._connection.execute(sql, (number,)).fetchall()[0][0]) for number in numbers]
