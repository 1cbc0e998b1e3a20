"""A person sees that somebody added something to the database, wherever they look."""

from __future__ import annotations

from contextlib import closing

import apsw

from kb.store.sqlite.store import SqliteStore
from kb_cli.commands.status import print_status
from tests.support.spaces import space

SPY = "CREATE TRIGGER spy AFTER INSERT ON audit BEGIN SELECT 1; END"


def test_what_is_foreign_is_counted_as_long_as_it_is_there(tmp_path):
    with (
        closing(SqliteStore(tmp_path / "kb.db", space())) as store,
        closing(apsw.Connection(str(tmp_path / "kb.db"))) as other,
    ):

        def foreign():
            with store.read() as tx:
                return list(tx.counts().foreign)

        assert foreign() == []
        other.execute(SPY)
        assert foreign() == ["trigger spy"]
        other.execute("DROP TRIGGER spy")
        assert foreign() == []


def test_the_status_says_what_it_means_and_what_to_do(capsys):
    print_status({"version": "3.0.0", "foreign": ["trigger spy", "view everything"]})
    shown = capsys.readouterr().out
    assert "trigger spy, view everything: kb did not create this" in shown
    assert "'kb doctor' shows the remedy" in shown
    print_status({"version": "3.0.0", "foreign": []})
    assert "somebody" not in capsys.readouterr().out
