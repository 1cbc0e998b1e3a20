"""The page of requirements names the tests that prove each."""

from __future__ import annotations

import re

from tests.conftest import REQUIREMENTS, ROOT
from tests.docs.requirements import proofs, rows


def test_the_page_of_requirements_names_the_tests_that_prove_each():
    numbers = [f"{group}-{each}" for group, last in REQUIREMENTS.items() for each in range(1, last + 1)]
    assert sorted(rows()) == sorted(numbers)
    assert rows() == proofs(), "python -m tests.docs.requirements writes the page anew"


def test_each_requirement_that_the_program_cites_is_on_the_page():
    cited = set()
    for module in (ROOT / "src").rglob("*.py"):
        for phrase in re.findall(r"requirements? ([A-Z]-\d+(?:(?:, | and | to )[A-Z]-\d+)*)", module.read_text()):
            cited.update(re.findall(r"[A-Z]-\d+", phrase))
    assert cited <= rows().keys()
