"""The pictures in the README are made by a command."""

from __future__ import annotations

import os

import pytest

from tests.conftest import ROOT
from tests.web.conftest import browser, one_browser, site  # noqa: F401 - fixtures
from tests.web.shots import shoot_readme

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]
KEPT = ROOT / "docs" / "pictures"


def test_the_pictures_of_the_readme_are_made_by_a_command(browser, site, tmp_path):  # noqa: F811 - fixtures
    """KB_PICTURES=1 keeps them: make pictures."""
    folder = KEPT if os.environ.get("KB_PICTURES") else tmp_path
    shoot_readme(browser, site.url, folder)
    made = {each.name for each in folder.iterdir()}
    readme = (ROOT / "README.md").read_text()
    assert {name for name in made if f"docs/pictures/{name}" in readme} == made
    assert {each.name for each in KEPT.iterdir()} == made
