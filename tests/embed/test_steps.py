"""A first start says what it does while the model is fetched and converted."""

from __future__ import annotations

import logging

import pytest

from kb.embed.models import steps
from tests.support.eventually import eventually


@pytest.fixture
def told(caplog, monkeypatch):
    monkeypatch.setattr(steps, "SECONDS", 0.01)
    caplog.set_level(logging.INFO, steps.log.name)
    return lambda: [record.getMessage() for record in caplog.records if record.name == steps.log.name]


def test_a_step_is_told_once_if_it_is_short_and_no_more_after_it(told):
    with steps.step("converting the model"):
        pass
    assert told() == ["converting the model"]


def test_a_long_step_is_told_again_with_what_is_there_of_it(told, tmp_path):
    with steps.step("downloading the model", tmp_path, 90):
        (tmp_path / "part").write_bytes(bytes(23_400_000))
        eventually("the size is told", told, lambda lines: any(": 23 of 90 MB, " in line for line in lines))
        (tmp_path / "part").write_bytes(bytes(99_000_000))
        eventually("never more than all", told, lambda lines: any(": 90 of 90 MB, " in line for line in lines))


def test_a_failure_of_a_step_ends_it(told, tmp_path):
    with pytest.raises(OSError, match="cable"), steps.step("downloading the model", tmp_path / "not there yet", 90):
        raise OSError("the cable is out")
    assert told()[0] == "downloading the model"
