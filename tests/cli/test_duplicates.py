"""kb duplicates."""

from __future__ import annotations

import pytest

from tests.http.test_duplicates import EDITED, STORY


def test_duplicates_are_listed_with_their_ids_and_paths(kb, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "story.txt").write_text(f"{tmp_path.name} {STORY}")
    (tmp_path / "edited.txt").write_text(f"{tmp_path.name} {EDITED}")
    kb("add", str(tmp_path), "--wait")
    mine = [group for group in kb.json("duplicates")["groups"] if str(tmp_path) in str(group)]
    assert [len(group["documents"]) for group in mine] == [2]
    printed = kb("duplicates").stdout
    assert "2 documents with the same content\n" in printed
    for document in mine[0]["documents"]:
        assert f"  {document['id']}  {document['source_path']}\n" in printed
    near = kb("duplicates", "--near").stdout
    assert "2 documents with similar texts, " in near or "3 documents with similar texts, at least " in near
    assert str(tmp_path / "edited.txt") in near


@pytest.mark.parametrize("options", [["--same"], ["12"], ["--near", "x"]])
def test_an_unknown_word_is_refused(kb, options):
    assert kb("duplicates", *options).returncode == 2
