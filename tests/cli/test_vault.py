"""A folder of Markdown with front matter, such as an Obsidian vault, goes in and shows as it is written."""

from __future__ import annotations

import pytest

KINDS = ("project", "person/friend", "place/city/harbour")


@pytest.fixture
def vault(tmp_path, tag):
    """300 notes in folders, with nested tags, dates, aliases and links; pictures beside them, and Obsidian's own."""
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / ".obsidian" / "app.json").write_text("{}")
    (vault / "attachments").mkdir()
    for number in range(300):
        folder = vault / f"area {number % 5}"
        folder.mkdir(exist_ok=True)
        (folder / f"note {number}.md").write_text(
            f"---\ntitle: Note № {number}\ntags:\n  - {KINDS[number % 3]}\n  - {tag}\n"
            f"date: {2000 + number % 25}-02-{1 + number % 28:02}\naliases: [Alias{number}{tag}]\n---\n"
            f"About [[note {(number + 1) % 300}]] and #inline/{number % 4}. ![[picture {number}.png]]\n"
        )
        (vault / "attachments" / f"picture {number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number % 256]))
    (vault / "attachments" / "terms.csv").write_text(f"term,meaning\n{tag},a word\n")
    return vault


@pytest.mark.slow
def test_a_vault_shows_titles_tags_and_dates_as_written_and_no_passage_is_front_matter(kb, vault, tag):
    ended = kb("add", "vault", "--wait")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "301 files: 301 added, 300 passed over (300 .png)\n"
    documents = kb.json("list", "--all", "--tags", tag)["documents"]
    assert len(documents) == 300
    shown = {document["title"]: document for document in documents}
    for number in range(300):
        document = shown[f"Note № {number}"]
        assert sorted(document["tags"]) == sorted([tag, KINDS[number % 3], f"inline/{number % 4}"])
        assert document["date"] == f"{2000 + number % 25}-02-{1 + number % 28:02}"
    line = kb("list", "--path", vault / "area 2" / "note 7.md").stdout.rstrip("\n").split("\t")
    assert line[1:5] == ["markdown", "2007-02-08", "Note № 7", f"inline/3, person/friend, {tag}"]
    assert len(kb.json("list", "--all", "--tags", f"{tag},place/city/harbour")["documents"]) == 100
    found = kb("search", f"Alias42{tag}", "-n", "1").stdout.splitlines()
    assert found[0] == " 1  Note № 42"
    assert "2017-02-15" in found[1]
    assert f"inline/2, project, {tag}" in found[1]
    assert "[[note 43]]" in kb("get", "--path", vault / "area 2" / "note 42.md").stdout
    for query in ("what is still open", "tags", "date 2001-02-01", f"aliases {tag}"):
        for result in kb.json("search", query, "--under", vault, "-n", 100)["results"]:
            assert "tags:" not in result["text"]
            assert "---" not in result["text"]
    [passage] = kb.json("search", f"Alias42{tag}", "-n", "1")["results"]
    assert passage["place"]["line_start"] == 9  # as in the file, below its front matter
    (vault / "bare.md").write_text(" \n")
    assert "bare.md: the file holds no text" in kb("sync", "vault").stderr
    again = kb("sync", "vault")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("302 files: 301 up to date, 1 unreadable")


def test_what_is_named_is_sent_whatever_it_is_called(kb, vault):
    ended = kb("add", "vault/attachments/picture 3.png", "--wait")
    assert ended.returncode == 1
    assert ended.stdout == "1 file: 1 failed\n"
