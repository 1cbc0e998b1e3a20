"""The names of documents, by whose words they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.lexical.names import tokens_of
from kb.store.analyzer import Tokenizer
from kb.store.row_mapping import array
from kb.store.rows import Named
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection

    import apsw

    from kb.store.row_mapping import Execute


def named(execute: Execute, tokens: Collection[str], most: int, limit: int) -> list[Named]:
    """See `kb.store.protocol.Documents.named`."""
    wanted = {"tokens": array(sorted(tokens)), "most": most, "limit": limit}
    return [Named(*row) for row in execute(statements("names")["select_named"], wanted)]


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
