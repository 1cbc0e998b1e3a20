"""The names of documents, by whose words they are found, in SQL; `sql` are the statements about names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from kb.store.row_mapping import Execute
from kb.store.rows import Named
from kb.store.sql.conditions import EVERY_DOCUMENT, Condition

WITHIN: Final = "AND EXISTS (SELECT 1 FROM documents WHERE documents.id = names.document_id AND {condition})"
"""That a document is one of those that a key may see."""


class NameTable(Protocol):
    """The words of names, as a store writes them."""

    def name_tokens(self, document: Named) -> list[str]:
        """Return by which words a document is found."""

    def insert_names(self, tokens: Sequence[tuple[int, str]]) -> None:
        """Write words of documents' names."""


def named(
    execute: Execute,
    sql: Mapping[str, str],
    tokens: Collection[str],
    most: int,
    limit: int,
    within: Condition | None = None,
) -> list[Named]:
    """See `kb.store.protocol.Documents.named`; `within` is the condition on documents that a key is limited to."""
    condition, parameters = within or EVERY_DOCUMENT
    statement = sql["select_named"].format(admitted_only=WITHIN.format(condition=condition) if within else "")
    values = (sorted({*tokens}), *parameters, most + 1, most, *parameters, limit, most)
    return [Named(*row) for row in execute(statement, values)]


def write_names(execute: Execute, sql: Mapping[str, str], table: NameTable, limit: int) -> bool:
    """See `kb.store.protocol.Documents.write_names`."""
    documents = [Named(*row) for row in execute(sql["select_unnamed"], {"limit": limit})]
    if not documents:
        return False
    ids = [document.document_id for document in documents]
    execute(sql["delete_names"], {"ids": ids})
    table.insert_names(
        [(document.document_id, token) for document in documents for token in table.name_tokens(document)]
    )
    execute(sql["forget_unnamed"], {"ids": ids})
    return len(documents) == limit
