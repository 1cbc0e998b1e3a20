"""The links in documents, in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from kb.api.rights import Limit
from kb.lexical.links import (
    BY_ALIAS,
    BY_NAME,
    BY_TITLE,
    DOCUMENT,
    Candidate,
    Link,
    is_address,
    links_in,
    names_of,
    resolve,
)
from kb.store.row_mapping import Execute
from kb.store.rows import Backlink, Document, Filter, Named, OutgoingLink
from kb.store.sql.conditions import Conditions

LINKING_TYPES: Final = ("note", "markdown")
"""The types of documents whose texts are Markdown."""

MOST_LINKING: Final = 20_000
"""The number of links by name that kb compares to find the links to a document."""


class Links:
    """See `kb.store.protocol.Links`.

    Args:
        execute: the transaction's.
        sql: the statements about links.
        conditions: the store's conditions on documents.
    """

    def __init__(self, execute: Execute, sql: Mapping[str, str], conditions: Conditions) -> None:
        self._execute = execute
        self._sql = sql
        self._conditions = conditions

    def write(self, documents: Sequence[tuple[Named, bool, str]]) -> None:
        """Write the names that find documents, and the links in their texts.

        Args:
            documents: each with whether it is a note, and its text if that is Markdown.
        """
        ids = {"ids": [named.document_id for named, *_ in documents]}
        self._execute(self._sql["delete_links"], ids)
        self._execute(self._sql["delete_link_names"], ids)
        for named, is_note, text in documents:
            other_names = [(alias, BY_ALIAS) for alias in named.aliases] + [(named.title, BY_TITLE)] * is_note
            names = names_of(named.title, named.source_path or None, other_names, is_part=named.is_part)
            for key, rank in {**names, f"{DOCUMENT}{named.document_id}": BY_NAME}.items():
                row = {"id": named.document_id, "key": key, "rank": rank}
                self._execute(self._sql["insert_link_name"], row)
            for number, link in enumerate(links_in(text)):
                row = {"id": named.document_id, "number": number, **link._asdict()}
                self._execute(self._sql["insert_link"], row)

    def outgoing(self, document: Document, limit: Limit | None = None) -> list[OutgoingLink]:
        links = [Link(*row) for row in self._execute(self._sql["select_links"], {"id": document.id})]
        candidates = self._candidates({link.key for link in links}, limit)
        root = self._root(document.source_path)
        found = []
        for link in links:
            to = _destination(link, document.source_path, root, candidates)
            if to is None and is_address(link.key):
                continue  # an address of the web that kb does not hold is not broken
            is_self = link.key == ""
            title = document.title if is_self else to.title if to else None
            found.append(OutgoingLink(link.target, document.id if is_self else to.document_id if to else None, title))
        return found

    def incoming(self, document: Document, limit: Limit | None = None) -> list[Backlink]:
        keys = [key for (key,) in self._execute(self._sql["select_keys"], {"id": document.id})]
        condition, parameters = self._conditions.admitted(Filter(limit=limit))
        sql = self._sql["select_linking"].format(condition=condition)
        rows = self._execute(sql, (keys, document.id, *parameters, MOST_LINKING)).fetchall()
        candidates = self._candidates({key for *_, key, _ in rows}, limit) if rows else {}
        leads_here: dict[tuple[str, str], bool] = {}
        found: dict[int, Backlink] = {}
        for document_id, title, source_path, target, key, place in rows:
            folder = (source_path or "").rpartition("/")[0]
            if (folder, target) not in leads_here:
                to = _destination(Link(target, key, place), source_path, self._root(source_path), candidates)
                leads_here[folder, target] = to is not None and to.document_id == document.id
            if leads_here[folder, target]:
                found.setdefault(document_id, Backlink(document_id, title, target, place))
        return list(found.values())

    def _candidates(self, keys: Iterable[str], limit: Limit | None) -> dict[str, list[Candidate]]:
        """Return the documents that keys find, of those within a limit."""
        wanted = sorted({key for key in keys if key})
        if not wanted:
            return {}
        condition, parameters = self._conditions.admitted(Filter(limit=limit))
        sql = self._sql["select_candidates"].format(condition=condition)
        found: dict[str, list[Candidate]] = {}
        for key, *candidate in self._execute(sql, (wanted, *parameters)):
            found.setdefault(key, []).append(Candidate.of(*candidate))
        return found

    def _root(self, source_path: str | None) -> str:
        """Return the synced folder that a path is in; empty for other paths."""
        within = (prefix for prefix in self._prefixes if source_path and source_path.startswith(prefix))
        return max(within, key=len, default="")

    @cached_property
    def _prefixes(self) -> list[str]:
        return [prefix for (prefix,) in self._execute(self._sql["select_roots"])]


def _destination(
    link: Link, source_path: str | None, root: str, candidates: Mapping[str, list[Candidate]]
) -> Candidate | None:
    found = candidates.get(link.key, [])
    if is_address(link.key) or link.key.startswith(DOCUMENT):
        return min(found, key=lambda each: (each.rank, each.document_id), default=None)
    return resolve(link.target, source_path, root, found) if link.key else None
