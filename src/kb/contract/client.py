"""The client of the engine's HTTP API: the gateway, the command line and the tests all speak through it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from uuid import uuid4

import httpx2

from kb.contract import errors
from kb.contract.versions import HEADER, USER_AGENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    Around = Callable[[str, str], AbstractContextManager[Mapping[str, str]]]

JSON = dict[str, Any]

LONG_SECONDS = 900
"""How long a call may take in which the engine embeds a whole text."""

CONNECT_SECONDS = 5

POOL = httpx2.Limits(max_connections=200, max_keepalive_connections=200)


STANDARD = {"type", "title", "status", "detail"}
"""The members of every problem (RFC 9457); what else there is belongs to the kind of error."""


class EngineClient:
    """One connection pool to one engine.

    A call whose connection breaks, as kept ones do when the engine restarts, is made once more if that is safe: reads,
    changes that come to the same when repeated, and additions, which carry an Idempotency-Key.

    Methods answer the engine's JSON as it came, which keeps fields of a newer engine and costs no validation;
    `kb.contract.models` names the shapes. They raise the `KbError` that the engine answered with, or
    `EngineUnreachable`.

    Args:
        base_url: where the engine is, without `/api/v1`.
        token: the engine's key (KB_API_KEY), if it has one.
        transport: another way to the engine than TCP, such as httpx2's ASGITransport in one process.
        timeout: seconds to wait for a connection, and for each part of an answer.
        around: what is entered for each call, given its method and path; it answers headers to be sent along.

    Attributes:
        engine_version: what the engine last said its version is; None before it did.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        timeout: float = 60,
        around: Around = lambda _, __: nullcontext({}),
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._around = around
        self._timeout = timeout
        self._headers = {"User-Agent": USER_AGENT} | ({"Authorization": f"Bearer {token}"} if token else {})
        self.engine_version: str | None = None
        # Plain HTTP never needs the certificates, and to load them takes longer than most calls.
        is_plain = self.base_url.startswith("http://")
        self._transport = transport or httpx2.AsyncHTTPTransport(verify=not is_plain, limits=POOL)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def search(self, **request: object) -> JSON:
        """POST /search with the fields of `models.SearchRequest`."""
        return await self._call("POST", "search", json=request)

    async def add_note(self, **request: object) -> JSON:
        """POST /jobs with the fields of `models.NoteRequest`."""
        return await self._call("POST", "jobs", json=request, headers=_once())

    async def add_file(
        self,
        filename: str,
        content: BinaryIO,
        *,
        tags: Sequence[str] = (),
        title: str | None = None,
        source_path: str | None = None,
    ) -> JSON:
        """POST /jobs with a file, read from `content` while it is sent."""
        fields = _set(title=title, source_path=source_path) | {"tags": list(tags)}
        files = {"file": (filename, content)}
        return await self._call("POST", "jobs", data=fields, files=files, headers=_once(), timeout=LONG_SECONDS)

    async def jobs(self, *, status: str | None = None, limit: int | None = None, cursor: str | None = None) -> JSON:
        """GET /jobs: a page, newest first."""
        return await self._call("GET", "jobs", params=_set(status=status, limit=limit, cursor=cursor))

    async def job(self, job_id: int) -> JSON:
        """GET /jobs/{id}."""
        return await self._call("GET", f"jobs/{job_id}")

    async def retry_job(self, job_id: int) -> JSON:
        """POST /jobs/{id}/retry."""
        return await self._call("POST", f"jobs/{job_id}/retry", repeatable=False)

    async def documents(self, **query: object) -> JSON:
        """GET /documents: a page, by `source_path`, `source_prefix`, `tag`, `doc_type`, `sort`, `limit`, `cursor`."""
        return await self._call("GET", "documents", params=_set(**query))

    async def document(self, document_id: int) -> JSON:
        """GET /documents/{id}: the document with its chunks."""
        return await self._call("GET", f"documents/{document_id}")

    async def text(self, document_id: int, *, unit: str, start: int, end: int) -> JSON:
        """GET /documents/{id}/text: the part from `start` to `end`, counted in `unit`."""
        return await self._call("GET", f"documents/{document_id}/text", params={"unit": unit, "from": start, "to": end})

    async def file(self, document_id: int) -> bytes:
        """GET /documents/{id}/file: the file as it was uploaded."""
        return (await self._request("GET", f"documents/{document_id}/file")).content

    async def delete_document(self, document_id: int) -> JSON:
        """DELETE /documents/{id}."""
        return await self._call("DELETE", f"documents/{document_id}", repeatable=False)

    async def change_tags(self, document_id: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> JSON:
        """PATCH /documents/{id}/tags."""
        change = {"add": list(add), "remove": list(remove)}
        return await self._call("PATCH", f"documents/{document_id}/tags", json=change)

    async def update_note(self, document_id: int, text: str, *, if_match: str | None = None) -> JSON:
        """PATCH /notes/{id}; with `if_match`, only while the note's content_hash is still that one."""
        headers = {"If-Match": f'"{if_match}"'} if if_match else {}
        body = {"text": text}
        return await self._call(
            "PATCH",
            f"notes/{document_id}",
            repeatable=not if_match,
            json=body,
            headers=headers,
            timeout=LONG_SECONDS,
        )

    async def tags(self) -> JSON:
        """GET /tags."""
        return await self._call("GET", "tags")

    async def status(self) -> JSON:
        """GET /status."""
        answer = await self._call("GET", "status")
        self.engine_version = str(answer.get("version", "of unknown version"))
        return answer

    async def _call(self, method: str, path: str, *, repeatable: bool = True, **options: Any) -> JSON:  # noqa: ANN401 - httpx2's own options
        response = await self._request(method, path, repeatable=repeatable, **options)
        try:
            answer = response.json()
        except ValueError:
            raise self._no_engine() from None
        if not isinstance(answer, dict):
            raise self._no_engine()
        return answer

    def _no_engine(self) -> errors.NoEngine:
        return errors.NoEngine(f"What answers at {self.base_url} is no kb engine.")

    async def _request(self, method: str, path: str, *, repeatable: bool = True, **options: Any) -> httpx2.Response:  # noqa: ANN401 - likewise
        try:
            with self._around(method, path) as headers:
                options["headers"] = self._headers | dict(headers) | options.get("headers", {})
                response = await self._sent(method, path, repeatable, options)
        except httpx2.TimeoutException:
            raise errors.EngineSlow(
                f"The engine at {self.base_url} did not answer in time. It may be busy: try again in a minute."
            ) from None
        except httpx2.ConnectError as error:
            raise errors.EngineUnreachable(
                f"The engine at {self.base_url} is unreachable ({_reason(error)}). "
                "Is it running? 'kb serve' starts it; KB_ENGINE_URL says where to look."
            ) from None
        except httpx2.RequestError as error:
            raise errors.EngineUnreachable(
                f"The engine at {self.base_url} is unreachable: it broke off its answer ({_reason(error)}). "
                "It may be restarting: try again in a moment; what was being changed may be done already."
            ) from None
        self.engine_version = response.headers.get(HEADER, self.engine_version)
        if response.is_error:
            raise _error(response)
        # An engine older than clients can work with says its version only in /status.
        if not response.is_success or (HEADER not in response.headers and path != "status"):
            raise self._no_engine()
        return response

    async def _sent(self, method: str, path: str, repeatable: bool, options: dict[str, Any]) -> httpx2.Response:
        try:
            return await self._answer(method, path, **options)
        except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            if not repeatable:
                raise
            return await self._answer(method, path, **options)

    async def _answer(self, method: str, path: str, *, timeout: float | None = None, **content: Any) -> httpx2.Response:  # noqa: ANN401, ASYNC109 - likewise
        """Straight through the transport: an `AsyncClient` takes longer than the gateway for all the rest of a call."""
        seconds = timeout or self._timeout
        timeouts = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)).as_dict()
        url = f"{self.base_url}/api/v1/{path}"
        request = httpx2.Request(method, url, extensions={"timeout": timeouts}, **content)
        response = await self._transport.handle_async_request(request)
        try:
            await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response


def _once() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid4())}


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _set(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _error(response: httpx2.Response) -> errors.KbError:
    """The error that a problem+json answer stands for; any other answer becomes a plain `KbError` of its status."""
    try:
        problem = response.json()
        kind = errors.BY_CODE.get(problem["type"].rpartition(":")[2], errors.KbError)
        error = kind(str(problem["detail"]), extra={name: problem[name] for name in problem.keys() - STANDARD})
    except (ValueError, LookupError, TypeError, AttributeError):
        error = errors.KbError(f"The engine answered {response.status_code} {response.reason_phrase}.")
    error.status = response.status_code
    return error
