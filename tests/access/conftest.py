from __future__ import annotations

from dataclasses import dataclass

import httpx2
import pytest

from tests.conftest import ALL_APPS, KEY, MCP_KEY

SURFACES = ("/mcp", "/collections/mcp", "/chatgpt/mcp")


@dataclass
class Api:
    """The HTTP API with one key."""

    url: str
    token: str | None

    def __call__(self, method, path, **options):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= options.pop("headers", {})
        return httpx2.request(method, f"{self.url}/api/v1/{path}", headers=headers, **options)

    def ok(self, method, path, **options):
        """The answer of a call, which must succeed."""
        answer = self(method, path, **options)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    def note(self, text, **fields):
        """The id of a new note's document."""
        job = self.ok("POST", "jobs?wait=60", json={"text": text, **fields})
        assert job["document_id"], job
        return job["document_id"]

    def file(self, name, content, **fields):
        """The job of a file."""
        return self.ok("POST", "jobs?wait=60", files={"file": (name, content)}, data=fields)

    def ids(self, path="documents?limit=500", **options):
        """The ids of the documents that an answer lists."""
        return {each["id"] for each in self.ok("GET", path, **options)["documents"]}

    def found(self, query, **fields):
        """The ids of the documents that a search finds."""
        results = self.ok("POST", "search", json={"query": query, "top": 100, **fields})["results"]
        return {each["document_id"] for each in results}


@pytest.fixture(scope="session")
def guarded(start_server, tmp_path_factory):
    """A server with every surface and a key for each."""
    settings = {"KB_MCP_COLLECTIONS": "1", "KB_MCP_CHATGPT": "1"}
    folder = tmp_path_factory.mktemp("guarded")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS, **settings) as running:
        yield running


@pytest.fixture(scope="session")
def admin(guarded):
    return Api(guarded.url, KEY)


@pytest.fixture(scope="session")
def make_key(admin):
    """Makes a key and gives its API: `make_key("reader", right="read", tags=["work"])`."""

    def make(name, **rights):
        return Api(admin.url, admin.ok("POST", "keys", json={"name": name, **rights})["key"])

    return make


@pytest.fixture(scope="session")
def reader(make_key):
    return make_key("reader", right="read")


@pytest.fixture(scope="session")
def writer(make_key):
    return make_key("writer", right="write")


@pytest.fixture(scope="session")
def tagged(make_key):
    """A key that is limited to a tag."""
    return make_key("tagged", right="write", tags=["work"])


@pytest.fixture(scope="session")
def foldered(make_key):
    """A key that is limited to a folder."""
    return make_key("foldered", right="write", path="/plan")
