"""Whether what follows from the chunks is there for each of them: a search over less would pass for a right one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import apsw

IDS: Final = {"vectors": "SELECT rowid AS id FROM chunks_vec_rowids", "words": "SELECT id FROM chunks_fts_docsize"}
"""Where the ids of chunks stand that have each."""


def check_in_step(connection: apsw.Connection) -> None:
    """Compare the number and the sum of ids, which takes no more than reading them.

    Raises:
        ValueError: something is not there for each chunk, or for what is none; or moments are not counted.
    """
    chunks = connection.execute("SELECT count(*), total(id) FROM chunks").get
    for what, ids in IDS.items():
        if connection.execute(f"SELECT count(*), total(id) FROM ({ids})").get != chunks:
            raise ValueError(f"its {what} are not those of its chunks")
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM generation)").get:
        raise ValueError("its moments are not counted")
