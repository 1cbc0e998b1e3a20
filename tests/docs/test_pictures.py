"""A command makes the pictures in README and docs, and the recording of a terminal."""

from __future__ import annotations

import os
import re

import pytest

from tests.conftest import ALL_APPS, ROOT
from tests.docs.blocks import WRITTEN
from tests.docs.recording import record
from tests.web.conftest import browser, one_browser, site  # noqa: F401 - fixtures
from tests.web.shots import shoot_docs

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]
KEPT = ROOT / "docs" / "pictures"
LARGEST = 90_000
SHOWN = re.compile(r"pictures/([\w-]+\.(?:png|svg))")


def test_the_pictures_of_readme_and_docs_are_made_by_a_command(browser, site, start_server, tmp_path):  # noqa: F811 - fixtures
    """KB_PICTURES=1 keeps them: make pictures."""
    folder = KEPT if os.environ.get("KB_PICTURES") else tmp_path / "pictures"
    shoot_docs(browser, site, folder)
    home = tmp_path / "home"
    with start_server(tmp_path / "terminal", KB_APPS=ALL_APPS) as server:
        (folder / "terminal.svg").write_text(record(server.url, home))
    made = {each.name for each in folder.iterdir()}
    assert {name for page in WRITTEN for name in SHOWN.findall(page.read_text())} == made
    assert {each.name for each in KEPT.iterdir()} == made
    assert [each.name for each in folder.iterdir() if each.stat().st_size > LARGEST] == []
