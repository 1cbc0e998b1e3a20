"""Texts that an older kb indexed by other words are indexed again (migrations 4 and 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.lexical.segment import folded, varied
from kb.store.postgres.names import write_names
from kb.store.postgres.statements import statements
from kb.store.postgres.words import FullText

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

NAMED_AT_ONCE = 1000


def refold(connection: Connection) -> None:
    """Index every document again of which a chunk or what it stands under has other forms, and write all names."""
    sql, full_text = statements("words"), FullText(connection)
    execute: Any = connection.execute
    for (document_id,) in execute(sql["select_with_forms"]).fetchall():
        rows = execute(sql["select_texts"], (document_id,)).fetchall()
        if all(folded(written) == written and varied(written) is None for _, *texts in rows for written in texts):
            continue
        chunks = [full_text.new_text(chunk_id, document_id, text, header) for chunk_id, text, header in rows]
        full_text.remove(document_id)
        lengths = [chunk.chunk_id for chunk in chunks], [chunk.length for chunk in chunks]
        execute(sql["update_lengths"], (*lengths, document_id))
        full_text.add(chunks)
    while write_names(execute, full_text.tokenizer, NAMED_AT_ONCE):
        pass
