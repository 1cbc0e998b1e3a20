"""What speed is measured with still runs."""

from __future__ import annotations

import importlib
import sys

import httpx2
import pytest

from bench.serving import running
from tests.conftest import ROOT


@pytest.mark.rare
@pytest.mark.parametrize("floor", ["starlette", "mcp", "fastmcp"])
def test_a_floor_of_the_gateway_serves(floor):
    with running([sys.executable, "-m", "bench.floors", floor]) as url:
        assert httpx2.get(f"{url}/readyz").text == "ready"


# All but the one that needs sentence-transformers.
@pytest.mark.parametrize("module", sorted({path.stem for path in (ROOT / "bench").glob("[!_]*.py")} - {"embedding"}))
def test_a_benchmark_finds_what_it_measures(module):
    importlib.import_module(f"bench.{module}")


@pytest.mark.parametrize("package", ["peers", "peers.rankings", "peers.speed"])
def test_what_is_measured_beside_others_needs_none_of_them(package):
    importlib.import_module(f"bench.{package}.__main__")
