"""Links and pictures of every page lead somewhere on a code host. Links to elsewhere are listed (pytest -s), not followed."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import cache

import pytest

from tests.conftest import ROOT
from tests.docs.blocks import BLOCK

LINK = re.compile(r"!?\[(?:[^\[\]`]|`[^`]*`|!\[[^\]]*\]\([^)]*\))*\]\((?P<target>[^)\s]+)\)")
EMBEDDED = re.compile(r"<[a-z]+ [^>]*?(?:src|srcset|href)=\"([^\"]+)\"")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
REFERENCE = re.compile(r"(?m)^\[[^\]]+\]: +(\S+)")
CODE = re.compile(r"(`+)[^`].*?\1", re.DOTALL)
DIRECTIVE = re.compile(r"(?m)^(?:```+|:::+) ?\{|\{(?:ref|doc|include|toctree)\}`")
ELSEWHERE = ("http://", "https://", "mailto:")
GENERAL = {"README.md"}


@cache
def tracked():
    """The files of the repository, and those that will be: what git does not ignore."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return {name for name in names.stdout.split("\0") if name and (ROOT / name).exists()}


PAGES = sorted(name for name in tracked() if name.endswith(".md"))


def prose(text):
    """A page without its blocks of code, and without comments."""
    return re.sub(r"(?s)<!--.*?-->", "", BLOCK.sub("", text))


def targets(text):
    """What the links and pictures of a page lead to."""
    text = CODE.sub("code", prose(text))
    found = (each.findall(text) for each in (LINK, PICTURE, EMBEDDED, REFERENCE))
    return list(dict.fromkeys(target.partition(" ")[0] for each in found for target in each))


@cache
def anchors(name):
    """The addresses of a page's headings, as a code host makes them: a second one of a name gets -1."""
    seen = Counter()
    made = set()
    for heading in re.findall(r"(?m)^#{1,6} +(.+?) *#*$", prose((ROOT / name).read_text())):
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        made.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return made


def fault(page, target):
    """What is wrong with a link on a page; None if it leads somewhere."""
    path, _, part = target.partition("#")
    place = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
    if not place.is_relative_to(ROOT):
        return "is outside of the repository"
    name = place.relative_to(ROOT).as_posix()
    if name not in tracked() and not any(each.startswith(f"{name}/") for each in tracked()):
        return "is not in the repository"
    if part and (not name.endswith(".md") or part not in anchors(name)):
        return "has no such heading"
    return None


def test_every_page_is_looked_at():
    assert {"README.md", "SECURITY.md", "docs/README.md", "docs/reference/http.md", "bench/README.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_picture_leads_somewhere(page):
    inside = []
    for target in targets((ROOT / page).read_text()):
        if target.startswith(ELSEWHERE):
            print(f"{page}: {target}")
        else:
            inside.append(target)
    assert [(target, why) for target in inside if (why := fault(page, target))] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_a_directive_that_a_code_host_shows_as_text(page):
    assert DIRECTIVE.findall((ROOT / page).read_text()) == []


def test_every_page_of_the_docs_is_in_its_navigation():
    listed = set(targets((ROOT / "docs/README.md").read_text()))
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    assert {page for page in pages if not page.startswith("adr/")} - listed == GENERAL


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("docs/start.md", None),
        ("docs/", None),
        ("docs/api.md#errors", None),
        ("docs/nothing.md", "is not in the repository"),
        ("../other/page.md", "is outside of the repository"),
        ("docs/api.md#nothing", "has no such heading"),
        ("build/report.md", "is not in the repository"),
    ],
)
def test_a_broken_link_is_recognised(target, why):
    assert fault("README.md", target) == why


def test_links_are_found_in_all_their_forms():
    text = (
        "[a](one.md), [`b` c](two.md#part), ![d](three.svg), [![e](four.png)](five.md)\n"
        '<img src="six.png">, <source srcset="seven.png">\n\n[f]: eight.md\n'
        "```sh\n[g](nine.md)\n```\n`[h](ten.md)`\n"
    )
    found = {"one.md", "two.md#part", "three.svg", "four.png", "five.md", "six.png", "seven.png", "eight.md"}
    assert set(targets(text)) == found
