"""The names of documents, by whose words they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kb.lexical.names import tokens_of
from kb.store.analyzer import Tokenizer
from kb.store.row_mapping import array
from kb.store.rows import Filter, Named
from kb.store.sqlite.document_query import admitted
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection

    import apsw

    from kb.api.access import Limit
    from kb.store.row_mapping import Execute


WITHIN: Final = "AND document_id IN (SELECT id FROM documents WHERE {condition})"
"""That a document is one of those that a key may see."""


def named(execute: Execute, tokens: Collection[str], most: int, limit: int, within: Limit | None = None) -> list[Named]:
    """See `kb.store.protocol.Documents.named`."""
    admitted_only, parameters = "", tuple[object, ...]()
    if within is not None:
        condition, parameters = admitted(execute, Filter(limit=within))
        admitted_only = WITHIN.format(condition=condition)
    sql = statements("names")["select_named"].format(admitted_only=admitted_only)
    wanted = (array(sorted(tokens)), *parameters, most + 1, most, *parameters, limit)
    return [Named(*row) for row in execute(sql, wanted)]


def write_names(connection: apsw.Connection, limit: int) -> bool:
    """See `kb.store.protocol.Documents.write_names`."""
    execute: Execute = connection.execute
    sql = statements("names")
    if not execute(sql["has_unnamed"]).get:
        return False
    tokenizer = Tokenizer(connection)
    rows = execute(sql["select_unnamed"], (limit,)).fetchall()
    for document_id, *names in rows:
        tokens = tokens_of(tokenizer.indexed, *names)
        execute(sql["delete_names"], (document_id,))
        connection.executemany(sql["insert_name"], [(token, document_id) for token in tokens])
        execute(sql["forget_unnamed"], (document_id,))
    if len(rows) < limit:
        execute(sql["forget_gone_unnamed"])
    return len(rows) == limit
