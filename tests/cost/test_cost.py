"""The work of common operations does not grow unnoticed. It is counted, so it is the same on every machine."""

from __future__ import annotations

import os

import pytest
import tomlkit

from tests.cost.counts import TABLE, complaint, read, updated
from tests.cost.measured import OPERATIONS, measure_apart

pytestmark = pytest.mark.sqlite


class Found:
    calls = ("a.py f", "a.py f", "b.py g")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, model_files):
    """The counts of each operation. `make counts` also writes them to the table."""
    folder = tmp_path_factory.mktemp("cost")
    environment = {"KB_DATA_DIR": str(folder), "KB_MODEL_DIR": str(model_files.onnx.parent), "KB_PRECISION": "fp32"}
    found = measure_apart(folder, environment)
    if "KB_COUNTS_REASON" in os.environ:
        table = updated(read(), {name: work.counts() for name, work in found.items()}, os.environ["KB_COUNTS_REASON"])
        TABLE.write_text(tomlkit.dumps(table))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_does_no_more_work_than_the_table_says(measured, operation):
    work, row = measured[operation], read().get(operation, {})
    found = (complaint(operation, kind, count, row, work) for kind, count in work.counts().items())
    if complaints := list(filter(None, found)):
        pytest.fail("\n".join(complaints), pytrace=False)


def test_the_table_has_a_row_for_each_operation_and_no_other():
    assert set(read()) == set(OPERATIONS)


def test_a_count_that_grew_needs_a_reason_and_keeps_it():
    table = {"search": {"statements": 523, "calls": 1000}}
    assert complaint("search", "calls", 1050, table["search"]) is None
    grown = complaint("search", "calls", 1051, table["search"], Found)
    assert "5.1% more" in grown
    assert "2 a.py f" in grown
    with pytest.raises(ValueError, match=r"563 statements, 7.6% more .*REASON"):
        updated(table, {"search": {"statements": 563}}, "")
    row = updated(table, {"search": {"statements": 563}}, "it finds more")["search"]
    assert (row["statements"], row["raised"]) == (563, ["statements 523 to 563: it finds more"])


def test_a_count_that_fell_is_to_be_kept():
    row = {"calls": 1000}
    assert complaint("search", "calls", 900, row) is None
    assert complaint("search", "calls", 899, row).endswith("Keep it: make counts")
    assert updated({"search": row}, {"search": {"calls": 899}}, "")["search"] == {"calls": 899}


def test_small_rises_do_not_add_up():
    assert updated({"search": {"calls": 1000}}, {"search": {"calls": 1050}}, "")["search"] == {"calls": 1000}


def test_a_new_count_is_to_be_noted():
    assert complaint("search", "rows", 1, {}) == "search: counts.toml has no number of rows. Run make counts."
