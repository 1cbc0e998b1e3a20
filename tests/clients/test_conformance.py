"""The official conformance suite against the real, authenticated app (`make conformance`).

The suite asks for the tools, resources and prompts of a test server of its own, and for optional parts of MCP that kb
does not offer. `conformance.toml` has a reason for each check that fails therefore; any other failure is a fault, and so
is a line there whose check passes or is no longer made.
"""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from tests.clients.conftest import CLIENTS
from tests.conftest import ALL_APPS, KEY, MCP_KEY

REVISIONS = ["2025-11-25", "2026-07-28"]
RESULT_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT.+Z")
FEWEST_PASSED = 40


@pytest.fixture(scope="module")
def open_server(start_server, tmp_path_factory):
    program = ("tests.clients.with_key",)
    folder = tmp_path_factory.mktemp("conformance")
    with start_server(folder, program=program, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_APPS=ALL_APPS) as running:
        yield running


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_check_that_applies_passes(open_server, node, tmp_path, revision):
    folder = tmp_path / "results"
    ended = node.run(
        "conformance", "server", "--url", f"{open_server.url}/mcp", "--requirements", revision, "-o", folder
    )
    passed, failed = results(folder)
    assert len(passed) >= FEWEST_PASSED, ended.stdout[-2000:] + ended.stderr[-2000:]
    print(f"\n{revision}: {len(passed)} checks passed, {len(failed)} do not apply")
    expected = {check for group in expectations() for check in group[revision]}
    unexpected = {check: reason for check, reason in failed.items() if check not in expected}
    assert unexpected == {}
    assert sorted(expected - failed.keys()) == [], "these no longer fail: take them out of conformance.toml"


def results(folder):
    """The checks that passed, and those that failed with the suite's reason, as `scenario/check`."""
    passed, failed = set(), {}
    for file in folder.glob("*/checks.json"):
        scenario = RESULT_FOLDER.fullmatch(file.parent.name)["scenario"]
        for check in json.loads(file.read_text()):
            name = f"{scenario}/{check['id']}"
            if check["status"] == "FAILURE":
                failed[name] = check.get("errorMessage", "")
            elif check["status"] == "SUCCESS":
                passed.add(name)
    return passed - failed.keys(), failed


def expectations():
    """Groups of checks that fail for one reason, by revision."""
    groups = tomllib.loads((CLIENTS / "conformance.toml").read_text())["expected"]
    assert all(group["reason"] for group in groups)
    return groups
