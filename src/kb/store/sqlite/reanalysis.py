"""A database that an older kb filled is indexed again, some documents at a time, while searches go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import numpy as np

from kb.lexical.segment import segmented, varied
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from kb.store.row_mapping import Execute

DOCUMENTS = 50
"""How many documents are indexed again in one transaction, for which others wait that write."""


def is_due(execute: Execute) -> bool:
    """Return whether some documents are still indexed as an older kb did it."""
    return bool(execute(statements("reanalysis")["is_due"]).get)


def progress(execute: Execute) -> tuple[int, int]:
    """Return how many documents are done, and of how many."""
    [(done, total)] = execute(statements("reanalysis")["count_done"])
    return done, total


def reanalyse_some(connection: apsw.Connection) -> bool:
    """Index the next documents again whose words are others now; return whether some were."""
    execute: Execute = connection.execute
    sql = statements("reanalysis")
    ids = [document_id for (document_id,) in execute(sql["select_next"], (DOCUMENTS,))]
    changed = [document_id for document_id in ids if _reanalyse(execute, document_id)]
    execute(sql["set_done"], (ids[-1],)) if len(ids) == DOCUMENTS else execute(sql["finish"])
    return bool(changed)


def _reanalyse(execute: Execute, document_id: int) -> bool:
    sql = statements("reanalysis")
    sections = [
        (section_id, *now)
        for section_id, header, *before in execute(sql["select_sections"], (document_id,)).fetchall()
        if (now := [segmented(header), varied(header)]) != before
    ]
    if sections:
        ids = apsw.carray(np.array([section_id for section_id, *_ in sections], np.int64))
        execute(sql["unindex_sections"], (ids,))
        for section_id, *now in sections:
            execute(sql["update_section"], (*now, section_id))
        execute(sql["index_sections"], (ids,))
    chunks = [
        (chunk_id, *now)
        for chunk_id, text, *before in execute(sql["select_chunks"], (document_id,)).fetchall()
        if (now := [segmented(text), varied(text)]) != before
    ]
    for chunk_id, *now in chunks:
        execute(sql["update_chunk"], (*now, chunk_id))
    return bool(sections or chunks)
