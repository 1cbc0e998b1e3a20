"""The pages in docs/reference say what the program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import MADE

PAGES = ("clients", "commands", "errors", "faults", "http", "metrics", "settings", "tools")


def test_every_page_is_made(made):
    assert sorted(made) == sorted(PAGES)
    assert sorted(page.stem for page in MADE.iterdir()) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_program_makes_of_it(made, name):
    assert (MADE / f"{name}.md").read_text() == made[name], "run make reference"


@pytest.mark.parametrize("name", PAGES)
def test_no_page_names_a_folder_of_the_machine_that_made_it(made, name):
    assert str(Path.cwd()) not in made[name]
    assert str(Path.home()) + "/" not in made[name]
