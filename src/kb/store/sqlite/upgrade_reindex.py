"""Index the documents of an older kb again, a few chunks at a time, while searches continue.

kb computes the changes outside of a write transaction, so other writers wait only while it writes some of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw
import numpy as np

from kb.index.words.language import guessed
from kb.index.words.segmentation import segmented, varied
from kb.store.row_mapping import Execute
from kb.store.sqlite.statements import statements

# The maximum number of chunks that one transaction indexes again, because other writers wait for it;
# and the number of compared chunks after which further documents wait for the next step.
CHUNKS, LOOKED_AT = 500, 5000

# The id of a section or a chunk, its text, and the two texts for the index.
Change = tuple[int, str, str | None, str | None]


@dataclass(slots=True)
class Changes:
    """The changes to the index for the next documents.

    Args:
        languages: the language, id and content hash of each document whose language changes.
        done: the last document that these changes complete; 0 if they do not complete the first document.
        is_last: whether no document follows.
        looked_at: the number of compared chunks.
    """

    languages: list[tuple[str | None, int, str]] = field(default_factory=list)
    sections: list[Change] = field(default_factory=list)
    chunks: list[Change] = field(default_factory=list)
    done: int = 0
    is_last: bool = False
    looked_at: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether more changes would block other writers for too long."""
        return len(self.chunks) >= CHUNKS or self.looked_at >= LOOKED_AT


def is_due(execute: Execute) -> bool:
    """Return whether some documents still have the index of an older kb."""
    return bool(execute(statements("reanalysis")["is_due"]).get)


def next_changes(execute: Execute, limit: int) -> Changes:
    """Return the changes to the index for the next documents, at most `limit`."""
    changes = Changes()
    documents = execute(statements("reanalysis")["select_next"], (limit,)).fetchall()
    for document_id, content_hash, language in documents:
        is_whole = _compare(execute, document_id, content_hash, language, changes)
        if is_whole:
            changes.done = document_id
        if not is_whole or changes.is_enough:
            break
    changes.is_last = len(documents) < limit and changes.done == max((id_ for id_, *_ in documents), default=0)
    return changes


def write_changes(connection: apsw.Connection, changes: Changes) -> list[int]:
    """Write the changes for texts that are still the same; return the chunks whose words in the index changed."""
    execute: Execute = connection.execute
    sql = statements("reanalysis")
    for language in changes.languages:
        execute(sql["update_language"], language)
    sections = [section for section in changes.sections if execute(sql["has_section"], section[:2]).get]
    under = _write_sections(execute, sections) if sections else []
    for chunk_id, text, *now in changes.chunks:
        execute(sql["update_chunk"], (*now, chunk_id, text))
    if changes.is_last:
        execute(sql["finish"])
    elif changes.done:
        execute(sql["set_done"], (changes.done,))
    return sorted({*under, *(chunk_id for chunk_id, *_ in changes.chunks)})


def _write_sections(execute: Execute, sections: Sequence[Change]) -> list[int]:
    """Index sections again; return their chunks."""
    sql = statements("reanalysis")
    ids = apsw.carray(np.array([section_id for section_id, *_ in sections], np.int64))
    execute(sql["unindex_sections"], (ids,))
    for section_id, _, *now in sections:
        execute(sql["update_section"], (*now, section_id))
    execute(sql["index_sections"], (ids,))
    return [chunk_id for (chunk_id,) in execute(sql["select_under"], (ids,))]


def _compare(execute: Execute, document_id: int, content_hash: str, known: str | None, changes: Changes) -> bool:
    """Add the changes for a document; return whether they are complete."""
    sql = statements("reanalysis")
    chunks = execute(sql["select_chunks"], (document_id,)).fetchall()
    language = guessed([text for _, text, *_ in chunks])
    if language != known:
        changes.languages.append((language, document_id, content_hash))
    for section_id, header, *before in execute(sql["select_sections"], (document_id,)).fetchall():
        if (now := (segmented(header), varied(header, language))) != tuple(before):
            changes.sections.append((section_id, header, *now))
    for chunk_id, text, *before in chunks:
        changes.looked_at += 1
        if (now := (segmented(text), varied(text, language))) != tuple(before):
            if len(changes.chunks) >= CHUNKS:
                return False
            changes.chunks.append((chunk_id, text, *now))
    return True
