"""The statements of both stores are translated for each; its own take their place."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kb.store.statements import SHARED, Dialect, read_statements

POSTGRES = Dialect("kb.store.postgres", timestamp="timestamptz", has_colons=False)
SQLITE = Dialect("kb.store.sqlite", timestamp="text", has_colons=True)


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        (SQLITE, "at < CAST(:at AS text) AND a = :a AND b LIKE '5%'"),
        (POSTGRES, "at < CAST(%(at)s AS timestamptz) AND a = %(a)s AND b LIKE '5%%'"),
    ],
)
def test_parameters_and_types_are_said_as_the_database_has_them(dialect, said):
    assert dialect.translated("at < CAST(:at AS $timestamp) AND a = :a AND b LIKE '5%'") == said


def test_no_text_in_a_shared_statement_has_what_would_be_taken_for_a_parameter():
    scripts = [file.read_text("utf-8") for file in files(SHARED).iterdir() if file.name.endswith(".sql")]
    assert scripts
    for script in scripts:
        assert not re.search(r"'[^'\n]*[:$][^'\n]*'|::", script)


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES])
def test_a_stores_own_statements_stand_beside_the_shared_ones(dialect):
    assert {"note", "select"} <= set(read_statements(dialect, "operations"))
    assert "claim" in read_statements(dialect, "jobs")
    assert not read_statements(dialect, "nothing")
