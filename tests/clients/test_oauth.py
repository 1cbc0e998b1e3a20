"""Clients of other makers sign in over OAuth, and the authorization scenarios of the conformance suite."""

from __future__ import annotations

import json
import subprocess

import httpx2
import pytest

from tests.clients.conftest import CLIENTS
from tests.clients.test_conformance import REVISIONS
from tests.conftest import KEY, MCP_KEY, free_port
from tests.mcp.test_session import TOOLS
from tests.oauth.conftest import Program


@pytest.fixture(scope="module")
def guarded(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("oauth")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS="api,mcp") as running:
        yield running


@pytest.fixture
def person(guarded):
    """Decides on the page of an address, and returns where the browser is sent."""
    with Program(guarded.url) as program:

        def decide(address):
            page = program.browser.get(address)
            assert page.status_code == 200, page.text
            return program.decide(page, MCP_KEY).headers["location"]

        yield decide


@pytest.mark.parametrize("document", ["", "https://claude.ai/oauth/claude-code-client-metadata"])
def test_the_typescript_client_registers_or_names_its_document_and_signs_in(guarded, node, person, document):
    callback = f"http://localhost:{free_port()}/callback"
    command = [node.program("node"), CLIENTS / "authorize.mjs", f"{guarded.url}/mcp", callback, document]
    with subprocess.Popen(
        command, env=node.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as client:
        address = client.stdout.readline()
        assert address, client.stderr.read()
        said, errors = client.communicate(f"{person(address.strip())}\n", timeout=60)
    assert client.returncode == 0, errors
    seen = json.loads(said)
    assert set(seen["tools"]) == TOOLS
    assert seen["client"] == document or not document
    assert "write" in seen["scope"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_authorization_scenarios_of_the_conformance_suite_pass(guarded, node, person, tmp_path, revision):
    port, results = free_port(), tmp_path / "results"
    with Program(guarded.url, callback=f"http://127.0.0.1:{port}/callback") as program:
        client_id = program.register().json()["client_id"]
    command = [
        *(node.program("conformance"), "authorization", "--url", guarded.url, "--client-id", client_id),
        *("--resource", f"{guarded.url}/mcp", "--port", str(port), "--spec-version", revision, "-o", results),
    ]
    with subprocess.Popen(
        command, env=node.environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as suite:
        said = ""
        for line in suite.stdout:
            said += line
            if line.startswith(f"{guarded.url}/authorize?"):
                httpx2.get(person(line.strip()))
        suite.wait(60)
    checks = [check for file in results.rglob("checks.json") for check in json.loads(file.read_text())]
    print(f"\n{revision}: {[(check['id'], check['status']) for check in checks]}")
    assert len(checks) >= 2, said
    assert {check["status"] for check in checks} == {"SUCCESS"}, checks
