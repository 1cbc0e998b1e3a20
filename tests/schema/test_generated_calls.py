"""Calls made up from the engine's own description: each is answered as the description says.

The suite tries the examples of the description and what each parameter allows and forbids, with a key. `make test-schema` also
makes up calls and sequences of calls, `KB_TEST_EXAMPLES` of each, with a key and without one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLES = os.environ.get("KB_TEST_EXAMPLES", "1")
PHASES = "examples,coverage,fuzzing,stateful" if "KB_TEST_EXAMPLES" in os.environ else "examples,coverage"
COMMAND = Path(sys.executable).with_name("schemathesis")
OPTIONS = (
    "--checks=all",
    f"--phases={PHASES}",
    "--suppress-health-check=all",
    "--generation-database=none",
    "--no-color",
)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.requirement("E-1")
@pytest.mark.requirement("E-2")
@pytest.mark.parametrize(
    "key", [pytest.param("", id="open", marks=pytest.mark.long), pytest.param("secret", id="with-a-key")]
)
def test_made_up_calls_are_answered_as_described(start_server, tmp_path, key):
    with start_server(tmp_path / "data", KB_API_KEY=key, KB_MCP_API_KEY=key) as server:
        run = subprocess.run(
            [COMMAND, "run", f"{server.url}/openapi.json", *OPTIONS, "--max-examples", EXAMPLES]
            # The first key of an open server would close it to all other calls.
            + (["--header", f"Authorization: Bearer {key}"] if key else ["--exclude-path", "/api/v1/first-key"]),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        print(*re.findall(r"\d+ generated, .*", run.stdout))
        assert run.returncode == 0, "\n".join(line[:400] for line in run.stdout.splitlines()[-150:])
        assert "Traceback" not in server.log.read_text()
