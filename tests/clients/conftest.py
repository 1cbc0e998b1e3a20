from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

CLIENTS = Path(__file__).parent


@dataclass
class Node:
    """Runs programs that `make` installed from npm, in an empty home folder of their own."""

    home: Path

    @property
    def environment(self):
        return {
            "PATH": os.pathsep.join([str(ROOT / ".venv-clients" / "bin"), os.environ["PATH"]]),
            "HOME": str(self.home),
        }

    def program(self, name):
        installed = CLIENTS / "node_modules" / ".bin" / name
        return installed if installed.exists() else ROOT / ".venv-clients" / "bin" / name

    def run(self, name, *arguments, **environment):
        return subprocess.run(
            [self.program(name), *arguments],
            env=self.environment | environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)
