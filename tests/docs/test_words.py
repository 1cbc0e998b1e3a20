"""Names in the docs exist, and all settings, commands and types are documented."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from importlib import import_module
from itertools import chain

import pytest

import kb
import kb_cli
import kb_mcp
import kb_web
from kb.api.fields import NOTE
from kb.api.limits import MAX_TAG_CHARS, MAX_TAGS
from kb.asgi.subapps import choose, installed
from kb.formats.installed_types import FORMATS
from kb.parser.sandbox import Limits
from kb.settings import EnvSettings
from kb.settings import Settings as EngineSettings
from kb_cli.main import COMMANDS
from kb_cli.runtime.config import PROFILE_VARIABLE, VARIABLES
from kb_cli.server import APPS, refuse_open
from kb_cli.server import ServeSettings as ServeSettings
from tests.conftest import ROOT
from tests.docs.blocks import MADE, WRITTEN, blocks


def settings_of(package):
    """The fields of every class of settings in a package."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name == "kb.embed.models.export":  # needs torch, and reads no settings
            continue
        for each in vars(import_module(module.name)).values():
            if isinstance(each, type) and issubclass(each, EnvSettings):
                yield from (f"KB_{name.upper()}" for name in each.model_fields)


SETTINGS = {PROFILE_VARIABLE, *VARIABLES.values(), *chain(*map(settings_of, (kb, kb_cli, kb_mcp, kb_web)))}
DEPLOYMENT = ["Makefile", *(str(each.relative_to(ROOT)) for each in (ROOT / "compose").iterdir() if each.is_file())]
SERVE = re.compile(r"(?m)^((?:KB_\w+=\S+ +)+)kb serve")
ROW = re.compile(r"(?m)^\| `(KB_\w+)` \|.*\| (.*) \|$")


@pytest.mark.requirement("R-3")
def test_every_setting_is_documented_with_what_it_means():
    described = dict(ROW.findall((MADE / "settings.md").read_text()))
    assert described.keys() == SETTINGS - {PROFILE_VARIABLE}
    assert all(len(meaning.split()) >= 3 for meaning in described.values())
    assert PROFILE_VARIABLE in (ROOT / "docs/configuration.md").read_text()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_no_server_that_a_page_starts_is_refused_for_the_keys_that_it_has(page):
    for variables in SERVE.findall(page.read_text()):
        environment = dict(each.split("=", 1) for each in variables.split())
        settings = ServeSettings.read(environment)
        refuse_open(settings, choose(installed(APPS), settings.apps.split(",")), environment)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_every_setting_that_a_page_names_exists(page):
    unknown = set(re.findall(r"\bKB_[A-Z_]*[A-Z]\b", page.read_text())) - SETTINGS
    assert [name for name in unknown if name not in settings_elsewhere()] == []


@cache
def settings_elsewhere():
    """Return the text of the deployment and of the tests, which have settings of their own."""
    return "".join(each.read_text() for each in (*map(ROOT.joinpath, DEPLOYMENT), *(ROOT / "tests").rglob("*.py")))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_every_make_target_that_a_page_names_exists(page):
    targets = re.findall(r"(?m)^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text())
    text = page.read_text()
    shown = "".join(block.text for block in blocks(page)) + " ".join(re.findall(r"`(make [a-z -]+)`", text))
    named = re.findall(r"(?<!kb keys )\bmake (?:-C \S+ )?([a-z][a-z-]+)", shown)
    assert set(named) <= set(" ".join(targets).split())


def test_every_command_is_documented():
    commands = (MADE / "commands.md").read_text()
    for command in COMMANDS:
        assert f"## kb {command}\n" in commands


def test_every_type_of_file_is_documented():
    page = (ROOT / "docs/file-types.md").read_text()
    table = re.search(r"(?ms)^\| type .*?\n\n", page)[0]
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"(?m)^\| (`.*?) \|", table)))
    assert sorted(named) == sorted([NOTE, *FORMATS])


def test_limits_are_as_documented():
    limits = EngineSettings.model_construct()
    page = (ROOT / "docs/file-types.md").read_text()
    for said in (
        f"{limits.max_upload_mb} MiB",
        f"{limits.parse_seconds} seconds, {limits.parse_memory_mb // 1024} GiB of memory",
        f"{Limits().output_mb} MiB of text, {Limits().pages:,} pages",
        f"{limits.max_note_chars:,} characters",
        f"{MAX_TAGS} at a time, {MAX_TAG_CHARS} characters",
    ):
        assert said in page
