"""The page of requirements names the tests that prove each."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.conftest import REQUIREMENTS, ROOT

TESTS = ROOT / "tests"
ROW = re.compile(r"(?m)^\| ([A-Z]-\d+) \| .* \| (.*) \|$")
MARK = re.compile(r'requirement\("([A-Z]-\d+)"\)')


def proofs():
    """The test modules that are marked with each requirement, as the page writes them."""
    modules = defaultdict(set)
    for module in TESTS.rglob("test_*.py"):
        for number in MARK.findall(module.read_text()):
            modules[number].add(f"`{module.relative_to(TESTS).with_suffix('').as_posix()}`")
    return {number: ", ".join(sorted(names)) for number, names in modules.items()}


def test_the_page_of_requirements_names_the_tests_that_prove_each():
    numbers = [f"{group}-{each}" for group, last in REQUIREMENTS.items() for each in range(1, last + 1)]
    rows = dict(ROW.findall((ROOT / "docs/requirements.md").read_text()))
    assert sorted(rows) == sorted(numbers)
    assert rows == proofs()


def test_each_requirement_that_the_program_cites_is_on_the_page():
    rows = dict(ROW.findall((ROOT / "docs/requirements.md").read_text()))
    cited = set()
    for module in (ROOT / "src").rglob("*.py"):
        for phrase in re.findall(r"requirements? ([A-Z]-\d+(?:(?:, | and | to )[A-Z]-\d+)*)", module.read_text()):
            cited.update(re.findall(r"[A-Z]-\d+", phrase))
    assert cited <= rows.keys()
