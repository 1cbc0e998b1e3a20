"""Texts with letters that used to be indexed as they were written are indexed anew (migration 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.lexical.segment import folded
from kb.store.postgres.statements import statements
from kb.store.postgres.words import FullText

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection


def refold(connection: Connection) -> None:
    """Index every document anew of which a chunk or what it stands under has such letters."""
    sql, full_text = statements("words"), FullText(connection)
    execute: Any = connection.execute
    for (document_id,) in execute(sql["select_beyond_ascii"]).fetchall():
        rows = execute(sql["select_texts"], (document_id,)).fetchall()
        if all(folded(written) == written for _, *texts in rows for written in texts):
            continue
        chunks = [full_text.new_text(chunk_id, document_id, text, header) for chunk_id, text, header in rows]
        full_text.remove(document_id)
        lengths = [chunk.chunk_id for chunk in chunks], [chunk.length for chunk in chunks]
        execute(sql["update_lengths"], (*lengths, document_id))
        full_text.add(chunks)
