"""The names of documents, by whose words they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.lexical.names import tokens_of
from kb.store.postgres.statements import statements
from kb.store.rows import Named

if TYPE_CHECKING:
    from collections.abc import Collection

    from kb.store.analyzer import Tokenizer


def named(execute: Any, tokens: Collection[str], most: int, limit: int) -> list[Named]:  # noqa: ANN401 - psycopg's
    """See `kb.store.protocol.Documents.named`."""
    wanted = {"tokens": sorted({*tokens}), "most": most, "limit": limit}
    return [Named(*row) for row in execute(statements("names")["select_named"], wanted)]


def write_names(execute: Any, tokenizer: Tokenizer, limit: int) -> bool:  # noqa: ANN401 - psycopg's
    """See `kb.store.protocol.Documents.write_names`."""
    sql = statements("names")
    rows = execute(sql["select_unnamed"], (limit,)).fetchall()
    if not rows:
        return False
    ids = [document_id for document_id, *_ in rows]
    pairs = [(id_, token) for id_, *names in rows for token in tokens_of(tokenizer.indexed, *names)]
    execute(sql["delete_names"], (ids,))
    execute(sql["insert_names"], ([id_ for id_, _ in pairs], [token for _, token in pairs]))
    execute(sql["forget_unnamed"], (ids,))
    return len(rows) == limit
