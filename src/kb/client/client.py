"""The client of the engine's HTTP API, used by the gateway, the command line and the tests."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, cast
from urllib.parse import quote, urlencode
from uuid import uuid4

from kb.api import errors
from kb.api.limits import MAX_PAGE
from kb.api.rights import OPERATION
from kb.api.version_check import HEADER, USER_AGENT
from kb.client.transport import BrokenOff, Outgoing, Response, Transport

if TYPE_CHECKING:
    import httpx2

JSON = dict[str, Any]
Around = Callable[[str, str], AbstractContextManager[Mapping[str, str]]]

LONG_SECONDS: Final = 900
"""The time limit in seconds of a call during which the engine embeds a whole text."""

WAIT_SECONDS: Final = 30
"""The time that one request waits for a job: less than proxies keep a silent connection."""

READY_SECONDS: Final = 2
"""The time in which an engine that is ready says so."""

PAUSE_SECONDS: Final = 0.2
"""The pause between two such requests, because an engine may not let them wait (KB_MAX_WAIT_SECONDS=0)."""

ENDED: Final = ("done", "failed")
"""Also in `kb.api.fields`, which takes longer to load than most commands (tests/cli/test_help.py)."""

PREFIX: Final = "/api/v1"
VERSION: Final = HEADER.lower()
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

REMEDIES: Final = {413: " Raise its limit, client_max_body_size in nginx.", 502: " Is the engine running?"}
"""What helps if a proxy answers for the engine, by status."""

STANDARD = {"type", "title", "status", "detail"}
"""The members of every problem (RFC 9457); the others depend on the kind of error."""


@dataclass(frozen=True, slots=True)
class Form:
    fields: Mapping[str, str | list[str]]
    filename: str
    content: BinaryIO


class EngineClient:
    """One connection pool to one engine.

    If a connection breaks, for example because the engine restarts, the client repeats the call once if that is safe:
    reads, changes with the same result when repeated, and additions, which have an Idempotency-Key.

    Methods return the engine's JSON unchanged, which keeps fields of a newer engine and needs no validation;
    The modules `kb.api.*_models` define the shapes. They raise the `KbError` that the engine answered with, or
    `EngineUnreachable`.

    Args:
        base_url: the engine's URL, without `/api/v1`.
        token: the engine's key (KB_API_KEY), if it has one.
        transport: a transport other than the network.
        timeout: seconds to wait for a connection, and for each part of an answer.
        around: returns a context manager for each call, given its method and path; its value is more headers to send.
        agent: the name of the calling program in the history.
        operation: a key shared by the requests of one command, so that it can be undone as a whole.

    Attributes:
        engine_version: the engine's version as last received; None before the first answer.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        transport: Transport | None = None,
        timeout: float = 60,
        around: Around = lambda _, __: nullcontext({}),
        agent: str | None = None,
        operation: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._around = around
        self._timeout = timeout
        user_agent = f"{USER_AGENT} ({agent})" if agent else USER_AGENT
        self._headers = {"User-Agent": user_agent} | ({"Authorization": f"Bearer {token}"} if token else {})
        self.begin_operation(operation)
        self.engine_version: str | None = None
        if transport is None:
            from kb.client.http import HTTPTransport  # it needs asyncio, which most commands do without

            transport = HTTPTransport(self.base_url)
        self._transport = transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    def begin_operation(self, key: str | None) -> None:
        """Combine the requests from now on into one operation; without a key, each request is an operation."""
        self._headers.pop(OPERATION, None)
        if key:
            self._headers[OPERATION] = key

    async def is_ready(self) -> bool:
        """Return whether the engine answers. A proxy may hide its probe; then any answer counts."""
        try:
            response = await self._transport.ask(Outgoing("GET", "/readyz", self._headers), READY_SECONDS)
        except OSError:
            return False
        return response.status < HTTPStatus.INTERNAL_SERVER_ERROR

    async def search(self, **request: object) -> JSON:
        """POST /search with the fields of `models.SearchRequest`."""
        return await self._call("POST", "search", json=request)

    async def add_note(self, *, wait: int = 0, **request: object) -> JSON:
        """POST /jobs with the fields of `models.NoteRequest`; answered when the job ends, or after `wait` seconds."""
        return await self._submit(wait, self._timeout, json=request)

    async def add_file(
        self,
        filename: str,
        content: BinaryIO,
        *,
        tags: Sequence[str] = (),
        title: str | None = None,
        source_path: str | None = None,
        wait: int = 0,
    ) -> JSON:
        """POST /jobs with a file, read from `content` while it is sent; `wait` as for `add_note`."""
        fields = _given(title=title, source_path=source_path) | {"tags": list(tags)}
        return await self._submit(wait, LONG_SECONDS, form=Form(fields, filename, content))

    async def _submit(self, wait: int, timeout: float, **body: object) -> JSON:  # noqa: ASYNC109 - as `_request`
        params, headers = _wait(wait), {"Idempotency-Key": str(uuid4())}
        return await self._call("POST", "jobs", params=params, headers=headers, timeout=timeout + wait, **body)

    async def jobs(self, *, status: str | None = None, limit: int | None = None, cursor: str | None = None) -> JSON:
        """GET /jobs: a page, newest first."""
        return await self._call("GET", "jobs", params=_given(status=status, limit=limit, cursor=cursor))

    async def iter_jobs(self, *, status: str | None = None) -> AsyncIterator[JSON]:
        async for page in self._pages("jobs", None, {"status": status}):
            for job in page["jobs"]:
                yield job

    async def job(self, job_id: int, *, wait: int = 0) -> JSON:
        """GET /jobs/{id}; answered when the job ends, or after `wait` seconds."""
        return await self._call("GET", f"jobs/{job_id}", params=_wait(wait), timeout=self._timeout + wait)

    async def wait_for_job(self, job_id: int, timeout: float | None = None) -> JSON:  # noqa: ASYNC109 - of all of it
        """Return the job after it has finished or failed.

        Raises:
            TimeoutError: it has not ended after `timeout` seconds.
        """
        import asyncio  # most commands need no event loop

        async with asyncio.timeout(timeout):
            while (job := await self.job(job_id, wait=WAIT_SECONDS))["status"] not in ENDED:
                await asyncio.sleep(PAUSE_SECONDS)
        return job

    async def retry_job(self, job_id: int) -> JSON:
        return await self._call("POST", f"jobs/{job_id}/retry", repeatable=False)

    async def drop_job(self, job_id: int) -> JSON:
        return await self._call("DELETE", f"jobs/{job_id}", repeatable=False)

    async def documents(self, **query: object) -> JSON:
        """GET /documents: a page, filtered by `source_path`, `tag`, `doc_type` and so on."""
        return await self._call("GET", "documents", params=_given(**query))

    async def iter_documents(self, **query: object) -> AsyncIterator[JSON]:
        """Yield the documents of all pages; `query` as for `documents`."""
        async for page in self._pages("documents", None, query):
            for document in page["documents"]:
                yield document

    async def count_documents(self, **query: object) -> int:
        """Return the number of documents on all pages; `query` as for `documents`."""
        return int((await self.documents(limit=1, total=True, **query))["total"])

    async def move_document(self, document_id: int, source_path: str) -> JSON:
        """PATCH /documents/{id}: change the path of its file."""
        return await self._call("PATCH", f"documents/{document_id}", json={"source_path": source_path})

    def document_pages(self, limit: int | None = None, **query: object) -> AsyncIterator[JSON]:
        """Yield pages up to `limit` documents, or all of them; `query` as for `documents`."""
        return self._pages("documents", limit, query)

    async def document(self, document_id: int, **query: object) -> JSON:
        """GET /documents/{id}: the document with its chunks, or with `chunks` of them starting at `from_chunk`.

        Or with the chunks at `chunk_id`, `page` or `heading`, and `around` chunks before and after them.
        """
        return await self._call("GET", f"documents/{document_id}", params=_given(**query))

    async def similar(self, document_id: int, *, top: int) -> JSON:
        """GET /documents/{id}/similar: in the form of a search's answer."""
        return await self._call("GET", f"documents/{document_id}/similar", params={"top": top})

    async def text(self, document_id: int, *, unit: str, start: int, end: int) -> JSON:
        """GET /documents/{id}/text: the part from `start` to `end`, counted in `unit`."""
        return await self._call("GET", f"documents/{document_id}/text", params={"unit": unit, "from": start, "to": end})

    async def file(self, document_id: int) -> bytes:
        """GET /documents/{id}/file: the file as it was uploaded."""
        return (await self._request("GET", f"documents/{document_id}/file")).content

    async def pages(self, document_id: int) -> JSON:
        """GET /documents/{id}/pages: the number of pages of a PDF."""
        return await self._call("GET", f"documents/{document_id}/pages")

    async def page_picture(
        self, document_id: int, number: int, chunk: int | None = None, words: Sequence[str] = ()
    ) -> bytes:
        """GET /documents/{id}/pages/{number}.png: a page of a PDF, with a chunk marked, or only the words in it."""
        path = f"documents/{document_id}/pages/{number}.png"
        return (await self._request("GET", path, params=_given(chunk=chunk, word=list(words) or None))).content

    async def thumbnail(self, document_id: int) -> bytes:
        """GET /documents/{id}/thumbnail: a picture, or the first page of a PDF, in small."""
        return (await self._request("GET", f"documents/{document_id}/thumbnail")).content

    async def duplicates(
        self, *, kind: str = "same", limit: int | None = None, cursor: str | None = None, dismissed: bool | None = None
    ) -> JSON:
        """GET /duplicates: a page of documents with the same content (`same`), or nearly the same text (`near`)."""
        params = _given(kind=kind, limit=limit, cursor=cursor, dismissed=dismissed)
        return await self._call("GET", "duplicates", params=params)

    async def dismiss_duplicates(self, document_ids: Sequence[int], *, dismissed: bool = True) -> JSON:
        """PUT /duplicates/dismissed: leave a group of near duplicates out of the list, or show it again."""
        sent = {"document_ids": document_ids, "dismissed": dismissed}
        return await self._call("PUT", "duplicates/dismissed", json=sent)

    async def iter_duplicates(self, kind: str) -> AsyncIterator[JSON]:
        cursor = None
        while True:
            page = await self.duplicates(kind=kind, cursor=cursor)
            yield page
            if (cursor := page["next_cursor"]) is None:
                return

    async def compare(self, document_id: int, other_id: int) -> JSON:
        """GET /documents/{id}/compare/{other_id}: the word-by-word differences."""
        return await self._call("GET", f"documents/{document_id}/compare/{other_id}")

    async def map(self) -> JSON:
        """GET /map: the positions of the documents on a plane."""
        return await self._call("GET", "map")

    async def delete_document(
        self,
        document_id: int,
        *,
        purge: bool = False,
        only_binned: bool = False,
        leave_out: bool = False,
        why: str | None = None,
    ) -> JSON:
        """DELETE /documents/{id}: move it to the bin; with `purge`, delete it for good, even from the bin.

        With `only_binned`, a purge spares a document that is not in the bin. With `leave_out`, a sync does not add its
        file again.
        """
        chosen = {"purge": purge, "only_binned": only_binned, "leave_out": leave_out}
        params = _given(**{name: "true" if wanted else None for name, wanted in chosen.items()}, why=why)
        return await self._call("DELETE", f"documents/{document_id}", params=params, repeatable=False)

    async def history(self, document_id: int, *, limit: int | None = None, cursor: str | None = None) -> JSON:
        """GET /documents/{id}/history: a page of versions, newest first."""
        return await self._call("GET", f"documents/{document_id}/history", params=_given(limit=limit, cursor=cursor))

    async def version(self, document_id: int, number: int) -> JSON:
        """GET /documents/{id}/history/{number}: a version with its text."""
        return await self._call("GET", f"documents/{document_id}/history/{number}")

    async def diff(self, document_id: int, number: int, to: int | None = None) -> JSON:
        """GET /documents/{id}/history/{number}/diff: the word-by-word differences from version `to`, or the newest."""
        return await self._call("GET", f"documents/{document_id}/history/{number}/diff", params=_given(to=to))

    async def revert(
        self, document_id: int, version: int, *, if_match: str | None = None, why: str | None = None
    ) -> JSON:
        """POST /documents/{id}/revert; with `if_match`, only while the content_hash has this value."""
        return await self._call(
            "POST",
            f"documents/{document_id}/revert",
            params=_given(why=why),
            repeatable=not if_match,
            json={"version": version},
            headers={"If-Match": f'"{if_match}"'} if if_match else {},
            timeout=LONG_SECONDS,
        )

    async def restore(self, document_id: int, *, why: str | None = None) -> JSON:
        params = _given(why=why)
        path = f"documents/{document_id}/restore"
        return await self._call("POST", path, params=params, repeatable=False, timeout=LONG_SECONDS)

    async def bin(self, *, limit: int | None = None, cursor: str | None = None) -> JSON:
        """GET /bin: a page of deleted documents that can be restored, most recently deleted first."""
        return await self._call("GET", "bin", params=_given(limit=limit, cursor=cursor))

    async def iter_bin(self) -> AsyncIterator[JSON]:
        async for page in self._pages("bin", None, {}):
            for document in page["documents"]:
                yield document

    async def undo(
        self,
        since: str | None = None,
        *,
        operation: int | None = None,
        key: str | None = None,
        mine: bool = False,
        dry_run: bool = False,
        why: str | None = None,
    ) -> JSON:
        """POST /undo: undo an operation, the last one by default, or all since a moment; or show what would change."""
        body = _given(since=since, operation=operation, key=key, mine=mine or None) | {"dry_run": dry_run}
        return await self._call("POST", "undo", params=_given(why=why), json=body, timeout=LONG_SECONDS)

    async def operations(self, *, limit: int | None = None, cursor: str | None = None, key: str | None = None) -> JSON:
        """GET /operations: a page of operations that can be undone, newest first, or the one with a key."""
        return await self._call("GET", "operations", params=_given(limit=limit, cursor=cursor, key=key))

    async def folders(self) -> JSON:
        """GET /folders: the synced folders, and the files that sync skips."""
        return await self._call("GET", "folders")

    async def claim_folder(self, **claim: object) -> JSON:
        """PUT /folders with the fields of `folder_models.FolderClaim`."""
        return await self._call("PUT", "folders", json=claim)

    async def watch_folder(self, watch_id: str, **watch: object) -> JSON:
        """PUT /folders/watches/{watch_id} with the fields of `folder_models.WatchRequest`."""
        return await self._call("PUT", f"folders/watches/{watch_id}", json=watch)

    async def stop_watching(self, watch_id: str) -> JSON:
        """DELETE /folders/watches/{watch_id}: forget a watch."""
        return await self._call("DELETE", f"folders/watches/{watch_id}")

    async def sync_now(self, watch_id: str) -> JSON:
        """POST /folders/watches/{watch_id}/sync: ask for a round."""
        return await self._call("POST", f"folders/watches/{watch_id}/sync")

    async def report_round(self, watch_id: str, **report: object) -> JSON:
        """POST /folders/watches/{watch_id}/report with the fields of `folder_models.WatchReport`."""
        return await self._call("POST", f"folders/watches/{watch_id}/report", json=report)

    async def note_running(self, machine: str, watches: Mapping[str, bool]) -> JSON:
        """POST /folders/seen: report the running watches of a machine, each with whether it is syncing."""
        seen = [{"id": watch_id, "is_syncing": is_syncing} for watch_id, is_syncing in watches.items()]
        return await self._call("POST", "folders/seen", json={"machine": machine, "watches": seen})

    async def change_tags(
        self, document_id: int, *, add: Sequence[str] = (), remove: Sequence[str] = (), why: str | None = None
    ) -> JSON:
        change = {"add": list(add), "remove": list(remove)}
        return await self._call("PATCH", f"documents/{document_id}/tags", params=_given(why=why), json=change)

    async def update_note(
        self,
        document_id: int,
        text: str | None = None,
        *,
        if_match: str | None = None,
        why: str | None = None,
        **change: object,
    ) -> JSON:
        """PATCH /notes/{id} with the fields of `models.NoteUpdate`.

        With `if_match`, only while the note's content_hash has this value.
        """
        headers = {"If-Match": f'"{if_match}"'} if if_match else {}
        return await self._call(
            "PATCH",
            f"notes/{document_id}",
            params=_given(why=why),
            repeatable=not (if_match or change.keys() - {"inline_tags"}),
            json=_given(text=text, **change),
            headers=headers,
            timeout=LONG_SECONDS,
        )

    async def keys(self) -> JSON:
        return await self._call("GET", "keys")

    async def make_key(
        self,
        name: str,
        *,
        right: str,
        tags: Sequence[str] = (),
        path: str | None = None,
        expires_at: str | None = None,
        per_minute: int | None = None,
        reads_all: bool = False,
    ) -> JSON:
        """POST /keys; the answer's `key` is the new key."""
        given = _given(name=name, right=right, path=path, expires_at=expires_at, per_minute=per_minute)
        body = given | {"tags": list(tags), "reads_all": reads_all}
        return await self._call("POST", "keys", json=body, repeatable=False)

    async def rotate_key(self, name: str, *, grace_minutes: int = 0) -> JSON:
        body = {"grace_minutes": grace_minutes}
        return await self._call("POST", f"keys/{quote(name, safe='')}/rotate", json=body, repeatable=False)

    async def revoke_key(self, name: str) -> JSON:
        return await self._call("DELETE", f"keys/{quote(name, safe='')}", repeatable=False)

    async def own_rights(self) -> JSON:
        """GET /key: the rights of the key in use."""
        return await self._call("GET", "key")

    async def identify_key(self, digest: str) -> JSON:
        """POST /key/identify: the key with this SHA-256."""
        return await self._call("POST", "key/identify", json={"digest": digest})

    async def grants(self) -> JSON:
        return await self._call("GET", "grants")

    async def make_grant(self, grant: JSON) -> JSON:
        """POST /grants: give a program access under a key; the answer's `code` is the program's."""
        return await self._call("POST", "grants", json=grant, repeatable=False)

    async def find_grant(self, kind: str, token: str) -> JSON:
        """POST /grant/find: the grant of a code or a refresh token."""
        return await self._call("POST", "grant/find", json={"kind": kind, "token": token}, repeatable=False)

    async def exchange_token(self, kind: str, token: str, scopes: Sequence[str] | None = None) -> JSON:
        """POST /grant/exchange: new tokens for a code or a refresh token."""
        body = {"kind": kind, "token": token} | _given(scopes=scopes)
        return await self._call("POST", "grant/exchange", json=body, repeatable=False)

    async def end_grant(self, grant_id: str) -> JSON:
        return await self._call("DELETE", f"grants/{quote(grant_id, safe='')}", repeatable=False)

    async def audit(self, **query: object) -> JSON:
        """GET /audit: a page of actions and their callers, by `document_id` and `by`, newest first."""
        return await self._call("GET", "audit", params=_given(**query))

    async def links(self, document_id: int) -> JSON:
        return await self._call("GET", f"documents/{document_id}/links")

    async def look_up_links(self, text: str, document_id: int | None = None) -> JSON:
        """POST /links: the links in a text that is not saved yet."""
        return await self._call("POST", "links", json=_given(text=text, document_id=document_id))

    async def rename_tag(self, old: str, new: str, *, why: str | None = None) -> JSON:
        change = {"old": old, "new": new}
        return await self._call("POST", "tags/rename", params=_given(why=why), json=change, timeout=LONG_SECONDS)

    async def delete_tag(self, tag: str, *, why: str | None = None) -> JSON:
        return await self._call(
            "POST", "tags/delete", params=_given(why=why), json={"name": tag}, repeatable=False, timeout=LONG_SECONDS
        )

    async def paths(self, prefix: str = "") -> JSON:
        """GET /paths: the folders right below a beginning of paths."""
        return await self._call("GET", "paths", params={"prefix": prefix})

    async def tags(self) -> JSON:
        return await self._call("GET", "tags")

    async def reembedding(self) -> JSON:
        """GET /reembed: the model of the vectors, and the progress of new ones."""
        return await self._call("GET", "reembed")

    async def reembed(self, action: str, model: str | None = None) -> JSON:
        """POST /reembed: `start`, also with another model, `stop`, `resume`, `rollback` or `finish`."""
        body = {"action": action} | ({"model": model} if model else {})
        return await self._call("POST", "reembed", json=body, timeout=LONG_SECONDS)

    async def models(self) -> JSON:
        """GET /models: the models that kb can use."""
        return await self._call("GET", "models", timeout=LONG_SECONDS)

    async def maintenance(self) -> JSON:
        """GET /maintenance: the backups, and the past actions on the data."""
        return await self._call("GET", "maintenance")

    async def maintain(self, action: str) -> JSON:
        """POST /maintenance: `back-up`, `verify`, `check` or `repair`, in the background."""
        return await self._call("POST", "maintenance", json={"action": action}, repeatable=False)

    async def decide_about_missing_files(self, action: str, folder: str = "") -> JSON:
        """POST /notes-folder: `delete` the notes of missing files, or `restore` the files."""
        return await self._call("POST", "notes-folder", json={"action": action, "folder": folder}, repeatable=False)

    async def settings(self) -> JSON:
        """GET /settings: the engine's settings, their values and sources."""
        return await self._call("GET", "settings")

    async def change_settings(self, **values: object) -> JSON:
        """PATCH /settings with the fields of `settings_models.SettingsChange`."""
        return await self._call("PATCH", "settings", json=values)

    async def make_first_key(self) -> JSON:
        """POST /first-key; the answer's `key` is the new key."""
        return await self._call("POST", "first-key", repeatable=False)

    async def storage(self) -> JSON:
        """GET /storage: the bytes of the database, the originals and the backups."""
        return await self._call("GET", "storage")

    async def activity(self) -> JSON:
        """GET /activity: the last hour."""
        return await self._call("GET", "activity")

    async def status(self, top_tags: int = 0) -> JSON:
        """GET /status, with this number of the most frequent tags."""
        answer = await self._call("GET", "status", params=_given(top_tags=top_tags or None))
        self.engine_version = str(answer.get("version", "of unknown version"))
        return answer

    async def _pages(self, path: str, limit: int | None, query: Mapping[str, object]) -> AsyncIterator[JSON]:
        cursor, left = None, limit
        while left is None or left > 0:
            size = MAX_PAGE if left is None else min(left, MAX_PAGE)
            page = await self._call("GET", path, params=_given(**query, limit=size, cursor=cursor))
            yield page
            if (cursor := page["next_cursor"]) is None:
                return
            left = None if left is None else left - len(page[path])

    async def _call(self, method: str, path: str, **options: Any) -> JSON:  # noqa: ANN401 - the options of `_request`
        answer = await self._request(method, path, **options)
        try:
            content: JSON = answer.json()
        except ValueError:
            raise self._not_an_engine() from None
        if not isinstance(content, dict):
            raise self._not_an_engine()
        return content

    def _not_an_engine(self) -> errors.NoEngine:
        return errors.NoEngine(f"The server at {self.base_url} is not a kb engine.")

    def _redirected(self, location: str | None) -> errors.NoEngine:
        if not location:
            return self._not_an_engine()
        elsewhere = location.partition("?")[0].partition(PREFIX)[0]
        return errors.NoEngine(
            f"The server at {self.base_url} redirects to {elsewhere}."
            " If the engine is there, set KB_ENGINE_URL to that URL."
        )

    async def _request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        json: object = None,
        form: Form | None = None,
        repeatable: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - of each part of the answer
    ) -> Response:
        own, body = _form(form) if form else _json(json)
        target = f"{PREFIX}/{path}" + (f"?{urlencode(params, doseq=True)}" if params else "")
        try:
            with self._around(method, path) as more:
                request = Outgoing(method, target, {**self._headers, **own, **more, **headers}, body)
                answer = await self._answer(request, repeatable, timeout or self._timeout)
        except TimeoutError:
            raise errors.EngineSlow(
                f"The engine at {self.base_url} did not answer in time. It may be busy. Try again in a minute."
            ) from None
        except BrokenOff as error:
            raise errors.EngineUnreachable(
                f"The engine at {self.base_url} is unreachable: the connection broke ({error}). "
                "It may be restarting. Try again in a moment; a change may already have been made."
            ) from None
        except OSError as error:
            raise errors.EngineUnreachable(
                f"The engine at {self.base_url} is unreachable ({_reason(error)}). "
                "Is it running? Start it with 'kb serve', or set KB_ENGINE_URL to its URL."
            ) from None
        self.engine_version = answer.headers.get(VERSION, self.engine_version)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise _error(answer)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._redirected(answer.headers.get("location"))
        # Engines too old for this client report their version only in /status.
        if VERSION not in answer.headers and path != "status":
            raise self._not_an_engine()
        return answer

    async def _answer(self, request: Outgoing, repeatable: bool, seconds: float) -> Response:
        try:
            return await self._transport.ask(request, seconds)
        except BrokenOff:
            if not repeatable:
                raise
            return await self._transport.ask(request, seconds)


def _wait(seconds: int) -> Mapping[str, int]:
    return {"wait": seconds} if seconds else NOTHING


def _json(content: object) -> tuple[Mapping[str, str], Iterable[bytes]]:
    if content is None:
        return NOTHING, ()
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    return {"Content-Type": "application/json", "Content-Length": str(len(body))}, (body,)


def _form(form: Form) -> tuple[Mapping[str, str], Iterable[bytes]]:
    """Return the headers and the body of a form with a file, which is read during iteration."""
    import httpx2  # slow to import (0.1 seconds), and most calls send no file

    encoded = httpx2.Request("POST", "http://-", data=form.fields, files={"file": (form.filename, form.content)})
    headers = {name: value for name, value in encoded.headers.items() if name != "host"}
    return headers, cast("httpx2.SyncByteStream", encoded.stream)


def _reason(error: OSError) -> str:
    if type(error).__module__ == "builtins" and error.errno:
        return os.strerror(error.errno)  # event loops use their own texts, TLS and others their own numbers
    return error.strerror or str(error) or type(error).__name__


def _given(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _error(answer: Response) -> errors.KbError:
    """Return the error in a problem+json answer; for any other answer, a plain `KbError` with its status."""
    try:
        problem = answer.json()
        kind = errors.BY_CODE.get(problem["type"].rpartition(":")[2], errors.KbError)
        error = kind(str(problem["detail"]), extra={name: problem[name] for name in problem.keys() - STANDARD})
    except (ValueError, LookupError, TypeError, AttributeError):
        phrase = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else ""
        said = f"answered {answer.status} {phrase}."
        proxy = f"A server in front of the engine, such as a proxy, {said}{REMEDIES.get(answer.status, '')}"
        error = errors.KbError(f"The engine {said}" if VERSION in answer.headers else proxy)
    error.status = answer.status
    return error
