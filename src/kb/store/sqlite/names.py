"""The names of documents, by whose words they are found."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Final

from kb.lexical.names import tokens_of
from kb.store.analyzer import Tokenizer
from kb.store.row_mapping import array
from kb.store.rows import Filter, Named
from kb.store.sqlite.document_query import SqliteConditions
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection

    import apsw

    from kb.api.access import Limit
    from kb.store.row_mapping import Execute


WITHIN: Final = "AND EXISTS (SELECT 1 FROM documents WHERE documents.id = names.document_id AND {condition})"
"""That a document is one of those that a key may see."""


def named(execute: Execute, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
    """See `kb.store.protocol.Documents.named`."""
    admitted_only, parameters = "", tuple[object, ...]()
    if within is not None:
        condition, parameters = SqliteConditions(execute).admitted(Filter(limit=within))
        admitted_only = WITHIN.format(condition=condition)
    sql = statements("names")["select_named"].format(admitted_only=admitted_only)
    wanted = (array(sorted(tokens)), *parameters, most + 1, most, *parameters, limit, most)
    return [Named(*row) for row in execute(sql, wanted)]


def write_names(connection: apsw.Connection, limit: int) -> bool:
    """See `kb.store.protocol.Documents.write_names`."""
    execute: Execute = connection.execute
    sql = statements("names")
    if not execute(sql["has_unnamed"]).get:
        return False
    tokenizer = Tokenizer(connection)
    rows = execute(sql["select_unnamed"], (limit,)).fetchall()
    for each in starmap(Named, rows):
        tokens = tokens_of(tokenizer.indexed, each.names, each.source_path)
        execute(sql["delete_names"], (each.document_id,))
        connection.executemany(sql["insert_name"], [(token, each.document_id) for token in tokens])
        execute(sql["forget_unnamed"], (each.document_id,))
    if len(rows) < limit:
        execute(sql["forget_gone_unnamed"])
    return len(rows) == limit
