"""Lists in the documents name all that the files have of which they tell."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_floors_on_the_page_are_those_of_the_contract():
    page = (ROOT / "docs/architecture.md").read_text()
    said = re.search(r"(?s)each floor knows only those below:\n(.*?)\.\n", page)[1]
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["type"] == "layers"]
    assert [re.findall(r"`(kb\.\w+)`", floor) for floor in said.split("·")] == [floor.split(" | ") for floor in layers]


def test_the_picture_shows_every_room():
    picture = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    rooms = {f"kb.{each.parent.name}" for each in (ROOT / "src/kb").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"kb\.\w+", picture))
