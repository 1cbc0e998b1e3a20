"""The links in documents, in SQL."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from kb.api.fields import NOTE
from kb.api.rights import Limit
from kb.index.words.link_targets import (
    BY_ALIAS,
    BY_NAME,
    BY_TITLE,
    DOCUMENT,
    Candidate,
    Link,
    Resolver,
    folder_of,
    is_elsewhere,
    line_at,
    links_in,
    mail_key,
    names_of,
)
from kb.store.row_mapping import Execute
from kb.store.rows import Backlink, Document, Filter, Named, OutgoingLink
from kb.store.sql.conditions import Conditions

LINKING_TYPES: Final = (NOTE, "markdown")
"""The types of documents whose texts are Markdown."""

WITHIN: Final = "AND EXISTS (SELECT 1 FROM documents WHERE documents.id = links.document_id AND {condition})"
"""Keeps the links to documents that a key may see."""


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

    def write(self, documents: Sequence[Named]) -> None:
        """Write the names that find documents, and the links in their texts."""
        ids = {"ids": [named.document_id for named in documents]}
        self._execute(self._sql["delete_links"], ids)
        self._execute(self._sql["delete_link_names"], ids)
        types = dict(self._execute(self._sql["select_types"], ids).fetchall())
        names = [(key, named.document_id, rank) for named in documents for key, rank in _names(named, types).items()]
        mails = {mail: json.loads(found) for mail, found in self._execute(self._sql["select_message_ids"], ids)}
        names += [(mail_key(own), mail, BY_NAME) for mail, (own, *_) in mails.items() if own]
        self._execute(self._sql["insert_link_names"], (json.dumps(names),))
        for mail, (_, *answered) in mails.items():
            self._insert(mail, "", (Link(f"<{other}>", mail_key(other), 0) for other in answered))
        for named in documents:
            if types.get(named.document_id) in LINKING_TYPES:
                texts = self._execute(self._sql["select_texts"], {"id": named.document_id}).fetchall()
                links = links_in("".join(text for (text,) in texts))
                self._insert(named.document_id, folder_of(named.source_path or None), links)

    def _insert(self, document_id: int, folder: str, links: Iterable[Link]) -> None:
        rows = [
            (document_id, number, link.target, link.key, str(link.spot(folder)), link.place)
            for number, link in enumerate(links)
        ]
        if rows:
            self._execute(self._sql["insert_links"], (json.dumps(rows),))

    def keep_message_ids(self, content_hash: str, message_ids: Sequence[str]) -> None:
        """Keep the message ids of a file for as long as a document or an earlier version has its content."""
        row = {"hash": content_hash, "ids": json.dumps(message_ids)}
        self._execute(self._sql["keep_message_ids"], row)

    def message_ids(self, content_hash: str) -> list[str]:
        """Return the message ids of a mail; empty for other files."""
        ids = self._execute(self._sql["select_ids_of_content"], {"hash": content_hash}).get
        return json.loads(ids) if ids else []

    def forget_message_ids(self, content_hash: str) -> None:
        self._execute(self._sql["forget_message_ids"], {"hash": content_hash})

    @property
    def is_complete(self) -> bool:
        return self.before is None

    @property
    def before(self) -> int | None:
        """The lowest id of the documents whose links are read since an upgrade; None if all are read."""
        before: int | None = self._execute(self._sql["select_before"]).get
        return before

    def note_before(self, before: int | None) -> None:
        """Set `before`."""
        self._execute(self._sql["set_before" if before else "finish"], {"before": before} if before else None)

    def outgoing(self, document: Document, limit: Limit | None = None) -> list[OutgoingLink]:
        links = [Link(*row) for row in self._execute(self._sql["select_links"], {"id": document.id})]
        return self._resolved(links, document, limit)

    def in_text(self, text: str, document: Document | None, limit: Limit | None = None) -> list[OutgoingLink]:
        return self._resolved(links_in(text), document, limit)

    def _resolved(self, links: Sequence[Link], document: Document | None, limit: Limit | None) -> list[OutgoingLink]:
        """Return the links in a document with the documents that they lead to."""
        resolver = self._resolver({link.key for link in links}, limit)
        folder = folder_of(document.source_path if document else None)
        found = []
        for link in links:
            to = resolver.document(link, folder)
            if to is None and is_elsewhere(link.key):
                continue  # an address that kb does not hold is not broken
            if link.key == "" and document:
                found.append(OutgoingLink(link.target, document.id, document.title))
            else:
                found.append(OutgoingLink(link.target, to.document_id if to else None, to.title if to else None))
        return found

    def is_linked(self, source_path: str) -> bool:
        keys = names_of(PurePosixPath(source_path).stem, source_path, [], is_part=False)
        return bool(self._execute(self._sql["is_linked"], (sorted(keys),)).get)

    def incoming(self, document: Document, most: int, limit: Limit | None = None) -> tuple[list[Backlink], int]:
        condition, parameters = self._conditions.admitted(Filter(limit=limit))
        within = WITHIN.format(condition=condition) if limit else ""
        spots = self._spots(document, within, parameters, limit)
        if not spots:
            return [], 0
        values = (json.dumps(spots), document.id, *parameters)
        rows = self._execute(self._sql["select_linking"].format(within=within), (*values, most)).fetchall()
        count = len(rows)
        if count == most:
            count = self._execute(self._sql["count_linking"].format(within=within), values).get
        return [Backlink(other, title, line_at(text or "", place or 0)) for other, title, place, text in rows], count

    def _spots(
        self, document: Document, within: str, parameters: Sequence[object], limit: Limit | None
    ) -> list[tuple[str, str]]:
        """Return the keys and spots of the links that lead to a document."""
        sql = self._sql["select_spots"].format(within=within)
        rows = self._execute(sql, (document.id, document.id, *parameters))
        found = [(Link(target, key, 0), spot, source_path) for target, key, spot, source_path in rows]
        resolver = self._resolver({link.key for link, *_ in found}, limit)
        resolved = [(resolver.document(link, folder_of(path)), link.key, spot) for link, spot, path in found]
        return sorted({(key, str(spot)) for to, key, spot in resolved if to and to.document_id == document.id})

    def _resolver(self, keys: Iterable[str], limit: Limit | None) -> Resolver:
        return Resolver(self._candidates(keys, limit), self._roots)

    @cached_property
    def _roots(self) -> list[str]:
        return [prefix for (prefix,) in self._execute(self._sql["select_roots"])]

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


def _names(named: Named, types: Mapping[int, str]) -> dict[str, int]:
    """Return the keys that find a document, with the best rank of each."""
    is_note = types.get(named.document_id) == NOTE
    others = [(alias, BY_ALIAS) for alias in named.aliases] + [(named.title, BY_TITLE)] * is_note
    names = names_of(named.title, named.source_path or None, others, is_part=named.is_part)
    return names | {f"{DOCUMENT}{named.document_id}": BY_NAME}
