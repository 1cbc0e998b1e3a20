"""A file in a synced folder has one name in the knowledge base, from any working folder and in any spelling."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.conftest import KEY


@pytest.fixture
def vault(kb, tmp_path, tag):
    """A shell beside a folder `vault`, which is in step under another name; and that name."""
    (tmp_path / "vault" / "sub").mkdir(parents=True)
    (tmp_path / "vault" / "a.md").write_text(f"# Tide {tag}\n")
    (tmp_path / "vault" / "sub" / "b.md").write_text(f"# Lamp {tag}\n")
    (tmp_path / "link").symlink_to(tmp_path / "vault")
    kb.json("sync", "vault", "--as", tag)
    return kb, tag


def paths(shell, *filters):
    return {each["source_path"] for each in shell.json("list", *filters)["documents"]}


def test_a_folder_is_meant_by_where_it_is(vault, tmp_path):
    kb, name = vault
    everything = {f"{name}/a.md", f"{name}/sub/b.md"}
    assert paths(kb, "--under", "vault") == paths(kb, "--under", "link") == paths(kb, "--under", name) == everything
    assert paths(kb, "--under", tmp_path / "vault" / "sub") == {f"{name}/sub/b.md"}
    inside = replace(kb, folder=tmp_path / "vault")
    assert paths(inside, "--under", ".") == everything
    assert paths(inside, "--path", "sub/b.md") == {f"{name}/sub/b.md"}
    found = inside.json("search", "lamp", "--under", "sub")["results"]
    assert [each["source_path"] for each in found] == [f"{name}/sub/b.md"]


def test_a_document_is_meant_by_where_its_file_is_or_was(vault, tmp_path):
    kb, name = vault
    inside = replace(kb, folder=tmp_path / "vault" / "sub")
    assert inside.json("get", "--path", "b.md")["source_path"] == f"{name}/sub/b.md"
    (tmp_path / "vault" / "sub" / "b.md").unlink()
    assert inside.json("get", "--path", "b.md")["source_path"] == f"{name}/sub/b.md"
    assert kb.json("get", "--path", f"{name}/a.md")["source_path"] == f"{name}/a.md"


def test_nothing_goes_in_twice_under_two_names(vault, tmp_path):
    kb, name = vault
    assert [each["job"] for each in kb.json("sync", "link")["files"]] == [None, None]
    assert [each["source_path"] for each in kb.json("add", "vault/a.md")] == [f"{name}/a.md"]
    assert {each["source_path"] for each in kb.json("sync", "vault/sub")["files"]} == {f"{name}/sub/b.md"}
    assert paths(kb, "--under", tmp_path) == set()


def test_a_document_opens_the_file_in_the_folder_and_deleting_it_says_that_it_is_there(vault, tmp_path):
    kb, name = vault
    document_id = str(kb.json("get", "--path", "vault/a.md")["id"])
    opened = kb("open", document_id, env={"EDITOR": "cat"})
    assert opened.stdout.startswith("# Tide")
    deleted = kb("delete", document_id, "--yes")
    assert f"{name}/a.md still exists" in deleted.stderr
    added = kb("add", "vault/sub", "--wait")
    assert added.returncode == 0


def test_what_is_left_out_stays_out_when_its_folder_is_added(vault):
    kb, name = vault
    kb("delete", str(kb.json("get", "--path", "vault/a.md")["id"]), "--yes", "--leave-out")
    assert [each["source_path"] for each in kb.json("add", "vault")] == [f"{name}/sub/b.md"]


def test_a_key_is_limited_to_the_folder_that_is_meant(vault):
    kb, name = vault
    made = kb("keys", "make", name, "--path", "vault", "--json")
    assert json.loads(made.stdout)["path"] == f"{name}/"
    limited = replace(kb, environment=kb.environment | {"KB_API_KEY": json.loads(made.stdout)["key"]})
    assert KEY not in limited.environment.values()
    assert len(paths(limited)) == 2


def test_a_folder_that_is_not_in_step_has_its_whole_path(kb, folder):
    assert {each["source_path"] for each in kb.json("add", "papers")} == {
        f"{folder}/rust.md",
        f"{folder}/deep/cat.txt",
    }
