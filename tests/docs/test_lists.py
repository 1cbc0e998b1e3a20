"""Lists in the docs are complete."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

FOR_USERS = [
    "setup",
    "serve",
    "install",
    "uninstall",
    "up",
    "up-gpu",
    "up-rocm",
    "up-postgres",
    "down",
    "logs",
    "clean",
]
ROOMS = {each.parent.name for each in (ROOT / "src/kb").glob("*/__init__.py")}
FLOORS = "Each floor knows only those below"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_floors_on_the_page_are_those_of_the_contract():
    page = (ROOT / "docs/architecture.md").read_text()
    said = re.search(r"(?s)each floor knows only those below:\n(.*?)\.\n", page)[1]
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["name"] == FLOORS]
    assert [re.findall(r"`(kb\.\w+)`", floor) for floor in said.split("·")] == [floor.split(" | ") for floor in layers]


def test_the_picture_shows_every_room():
    picture = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    assert {f"kb.{room}" for room in ROOMS} <= set(re.findall(r"kb\.\w+", picture))


def test_every_make_target_for_contributors_is_listed():
    rules = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    targets = re.search(r"(?m)^\.PHONY: (.*)$", rules)[1].split()
    page = (ROOT / "CONTRIBUTING.md").read_text()
    listed = {word for line in re.findall(r"(?m)(?:^|`)make ([a-z -]+)", page) for word in line.split()}
    assert set(targets) - set(FOR_USERS) <= listed
    assert set(FOR_USERS) <= set(targets)


def test_where_things_go_names_every_room():
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## Where things go")[1].split("\n## ")[0]
    assert set(re.findall(r"src/kb/(\w+)/", table)) >= ROOMS


def test_every_dependency_has_its_line():
    groups = PYPROJECT["dependency-groups"].values()
    page = (ROOT / "docs/adr/0002-dependencies.md").read_text().lower()
    named = set(re.findall(r"[a-z0-9][\w.-]*\w", page))
    assert {re.match(r"[\w.-]+", each)[0] for group in groups for each in group} <= named
