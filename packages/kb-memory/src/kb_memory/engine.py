"""The few calls of kb's HTTP API that a memory needs."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

SECONDS = 60


class Refused(Exception):
    """kb refused a call: its status, and the reason in words."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Engine:
    """A running kb.

    Args:
        url: its address; by default `KB_ENGINE_URL`, or this machine.
        key: a key; by default `KB_API_KEY`.
        program: the name of the program in the history.
    """

    def __init__(self, url: str | None = None, key: str | None = None, program: str = "kb-memory") -> None:
        self._url = (url or os.environ.get("KB_ENGINE_URL") or "http://127.0.0.1:8000").rstrip("/")
        key = key or os.environ.get("KB_API_KEY")
        self._headers = {"User-Agent": program} | ({"Authorization": f"Bearer {key}"} if key else {})

    def search(self, query: str, top: int, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the best passages for a query."""
        found: list[dict[str, Any]] = self._call("POST", "search", {**filters, "query": query, "top": top})["results"]
        return found

    def below(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Yield the documents whose source paths begin with `prefix`."""
        cursor: dict[str, str] = {}
        while True:
            query = urlencode({"source_prefix": prefix, "limit": 500, "sort": "id"} | cursor)
            page = self._call("GET", f"documents?{query}")
            yield from page["documents"]
            if not page["next_cursor"]:
                return
            cursor = {"cursor": page["next_cursor"]}

    def at(self, path: str) -> dict[str, Any] | None:
        """Return the document at a source path."""
        found = self._call("GET", f"documents?{urlencode({'source_path': path})}")["documents"]
        return found[0] if found else None

    def text(self, document_id: int) -> str:
        return str(self._call("GET", f"documents/{document_id}/text?unit=characters")["text"])

    def add(self, path: str, text: str) -> None:
        self._call("POST", f"jobs?wait={SECONDS}", {"text": text, "source_path": path})

    def change(self, document: Mapping[str, Any], text: str) -> None:
        """Write a new text, if the document is still as it was read."""
        self._call("PATCH", f"notes/{document['id']}", {"text": text}, {"If-Match": f'"{document["content_hash"]}"'})

    def move(self, document: Mapping[str, Any], path: str) -> None:
        self._call("PATCH", f"documents/{document['id']}", {"source_path": path})

    def delete(self, document: Mapping[str, Any]) -> None:
        """Move a document to the bin."""
        self._call("DELETE", f"documents/{document['id']}")

    def _call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of a call.

        Raises:
            Refused: kb refused it.
        """
        data = None if body is None else json.dumps(body).encode()
        sent = {**self._headers, **(headers or {})} | ({"Content-Type": "application/json"} if data else {})
        request = Request(f"{self._url}/api/v1/{quote(path, safe='/?&=%+')}", data, sent, method=method)  # noqa: S310
        try:
            with urlopen(request, timeout=SECONDS * 2) as answer:  # noqa: S310 - the owner's own address
                return json.load(answer)
        except HTTPError as error:
            try:
                detail = json.load(error)["detail"]
            except (ValueError, KeyError):
                detail = error.reason
            raise Refused(error.code, str(detail)) from None
