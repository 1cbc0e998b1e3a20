"""Texts that an older kb indexed by other words are indexed again (migrations 4, 8 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.lexical.language import guessed
from kb.lexical.segment import folded, varied
from kb.store.postgres.names import write_names
from kb.store.postgres.statements import statements
from kb.store.postgres.words import FullText

if TYPE_CHECKING:
    from kb.store.postgres.connection import Connection

NAMED_AT_ONCE = 1000


def refold(connection: Connection) -> None:
    """Find out in which language each document is, index again what has other forms, and write all names."""
    sql, full_text = statements("words"), FullText(connection)
    execute: Any = connection.execute
    for (document_id,) in execute(sql["select_written"]).fetchall():
        rows = execute(sql["select_texts"], (document_id,)).fetchall()
        language = guessed([text for _, text, _ in rows])
        execute(sql["set_language"], (language, document_id))
        if not any(_has_forms(written, language) for _, *texts in rows for written in texts):
            continue
        chunks = [full_text.new_text(chunk_id, document_id, text, header, language) for chunk_id, text, header in rows]
        full_text.remove(document_id)
        lengths = [chunk.chunk_id for chunk in chunks], [chunk.length for chunk in chunks]
        execute(sql["update_lengths"], (*lengths, document_id))
        full_text.add(chunks)
    while write_names(execute, full_text.tokenizer, NAMED_AT_ONCE):
        pass


def _has_forms(written: str, language: str | None) -> bool:
    """Return whether a text has other forms than what is written."""
    return folded(written) != written or varied(written, language) is not None
