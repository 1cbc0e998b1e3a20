"""The statements of both stores are translated for each; its own take their place."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kb.store.statements import SHARED, Dialect, read_statements

POSTGRES = Dialect("kb.store.postgres", has_colons=False)
SQLITE = Dialect("kb.store.sqlite", has_colons=True)


@pytest.mark.parametrize(
    ("dialect", "said"), [(SQLITE, "a = :a AND b LIKE '5%'"), (POSTGRES, "a = %(a)s AND b LIKE '5%%'")]
)
def test_parameters_are_said_as_the_database_has_them(dialect, said):
    assert dialect.translated("a = :a AND b LIKE '5%'") == said


@pytest.mark.parametrize(
    ("dialect", "said"), [(SQLITE, "CAST(:at AS text)"), (POSTGRES, "CAST(%(at)s AS timestamptz)")]
)
def test_words_are_said_as_the_database_has_them(dialect, said):
    assert said in read_statements(dialect, "folders")["put_folder"]


def test_no_text_in_a_shared_statement_has_what_would_be_taken_for_a_parameter():
    scripts = [file.read_text("utf-8") for file in files(SHARED).iterdir() if file.name.endswith(".sql")]
    assert scripts
    for script in scripts:
        assert not re.search("[:$]", "".join(re.findall(r"'([^'\n]*)'", script)))
        assert "::" not in script


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES])
def test_a_stores_own_statements_stand_beside_the_shared_ones(dialect):
    assert {"note", "select"} <= set(read_statements(dialect, "operations"))
    assert "claim" in read_statements(dialect, "jobs")
    assert not read_statements(dialect, "nothing")
