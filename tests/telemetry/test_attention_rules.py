"""What needs attention is decided in one place, with a remedy for each."""

from __future__ import annotations

import pytest

from kb.attention import LATE, LOW_SPACE, QUEUE_SECONDS, BackupFacts, Facts, attention, free_space
from kb.settings import Settings

HOUR = 3600.0


def names(**facts):
    return [(item.name, item.is_urgent) for item in attention(Facts(**facts))]


def test_nothing_is_wrong_with_a_fresh_backup_and_space():
    assert names(backups=BackupFacts(folder="/b", age=HOUR), free={"/data": LOW_SPACE}, queue_age=QUEUE_SECONDS) == []
    assert names() == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"backups": BackupFacts(folder=None)}, ("newest backup", False)),
        ({"backups": BackupFacts(folder="/b")}, ("newest backup", True)),
        ({"backups": BackupFacts(folder="/b", hours=1, age=LATE * HOUR + 1)}, ("newest backup", True)),
        ({"backups": BackupFacts(folder="/b", age=0, failure="no space")}, ("newest backup", True)),
        ({"free": {"/data": LOW_SPACE - 1}}, ("disk space", True)),
        ({"queue_age": QUEUE_SECONDS + 1}, ("queue", False)),
        ({"folders": {"the inbox": "Permission denied"}}, ("folders", False)),
        ({"settings": {"KB_INBOX_DIR": "it is gone"}}, ("settings", True)),
        ({"clock": "the machine's clock is a year later than expected"}, ("clock", False)),
        ({"foreign": ["trigger spy"]}, ("unknown objects", True)),
        ({"languages": {"en": 9, "de": 10, "fr": 1}}, ("languages", False)),
    ],
)
def test_each_fact_has_its_urgency_and_a_remedy(facts, expected):
    [item] = attention(Facts(**facts))
    assert (item.name, item.is_urgent) == expected
    assert item.remedy
    assert item.says


def test_the_most_urgent_comes_first():
    assert [urgent for _, urgent in names(queue_age=10**6, free={"/data": 0})] == [True, False]


def test_the_free_space_of_a_folder_that_is_not_made_yet_is_that_of_its_disk(tmp_path):
    free = free_space(Settings(data_dir=tmp_path, backup_dir=tmp_path / "not" / "yet"))
    assert set(free) == {str(tmp_path), str(tmp_path / "not" / "yet")}
    assert len(set(free.values())) <= 2
