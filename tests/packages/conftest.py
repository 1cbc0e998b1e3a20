"""The libraries of other makers that `make packages` installs, and the packages of this repository."""

from __future__ import annotations

import sys

from tests.conftest import ROOT

# Behind kb's own libraries, so that these stay as they are.
sys.path += [str(ROOT / ".venv-packages"), *(str(folder) for folder in sorted(ROOT.glob("packages/*/src")))]


def pytest_configure(config):
    for marker in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{marker}: of LangChain's tests")
