"""Links lead somewhere. Those to elsewhere are listed (pytest -s), not followed."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.docs.blocks import MADE, WRITTEN, prose

LINK = re.compile(r"(?<!!)\[(?:[^\]`]|`[^`]*`)+\]\((?P<target>[^)\s]+)\)")
GENERATED = {"clients", "commands", "errors", "http", "metrics", "settings", "tools"}
ELSEWHERE = ("http://", "https://", "mailto:")


def links(page):
    return [found["target"] for found in LINK.finditer(prose(page))]


@pytest.mark.parametrize("page", [*WRITTEN, ROOT / "CHANGELOG.md"], ids=lambda page: page.stem)
def test_every_link_inside_leads_to_a_page_and_its_part(page):
    for target in links(page):
        if target.startswith(ELSEWHERE):
            print(f"{page.relative_to(ROOT)}: {target}")
            continue
        path, _, part = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if place.parent == MADE:
            assert place.stem in GENERATED, target
        else:
            assert place.exists(), target
            assert not part or part in parts(place), target


def parts(page):
    """What its headings are called in an address."""
    headings = re.findall(r"(?m)^#+ (.+)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
