"""The names of documents, by whose words they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kb.lexical.names import FILE_MARK, tokens_of
from kb.store.postgres.statements import statements
from kb.store.rows import Named
from kb.store.sql.conditions import EVERY_DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Collection

    from kb.store.analyzer import Tokenizer
    from kb.store.sql.conditions import Condition


LONGEST_NAME: Final = 500
"""How many characters of a name a filter compares: more would not fit the index."""

WITHIN: Final = "AND EXISTS (SELECT 1 FROM documents WHERE documents.id = names.document_id AND {condition})"
"""That a document is one of those that a key may see."""


def named(
    execute: Any,  # noqa: ANN401 - psycopg's
    tokens: Collection[str],
    most: int,
    limit: int,
    within: Condition | None = None,
) -> list[Named]:
    """See `kb.store.protocol.Documents.named`; `within` is the condition on documents that a key is limited to."""
    condition, parameters = within or EVERY_DOCUMENT
    admitted_only = WITHIN.format(condition=condition) if within else ""
    sql = statements("names")["select_named"].format(admitted_only=admitted_only)
    wanted = (*parameters, most + 1, sorted({*tokens}), most, *parameters, limit, most)
    return [Named(*row) for row in execute(sql, wanted)]


def write_names(execute: Any, tokenizer: Tokenizer, limit: int) -> bool:  # noqa: ANN401 - psycopg's
    """See `kb.store.protocol.Documents.write_names`."""
    sql = statements("names")
    rows = [Named(*row) for row in execute(sql["select_unnamed"], (limit,))]
    if not rows:
        return False
    ids = [each.document_id for each in rows]
    pairs = [(each.document_id, token) for each in rows for token in _tokens(tokenizer, each)]
    execute(sql["delete_names"], (ids,))
    execute(sql["insert_names"], ([id_ for id_, _ in pairs], [token for _, token in pairs]))
    execute(sql["forget_unnamed"], (ids,))
    return len(rows) == limit


def _tokens(tokenizer: Tokenizer, named: Named) -> list[str]:
    """Return by which words a document is found, and its name as a whole for a filter."""
    words = tokens_of(tokenizer.indexed, named.names, named.source_path)
    return [*words, f"{FILE_MARK}{named.folded_name}"[:LONGEST_NAME]]
