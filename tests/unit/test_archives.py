"""An archive of archives is unpacked as long as all of it together is what anyone means."""

from __future__ import annotations

import pytest

from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync import archive
from kb_cli.sync.archive import unpacked
from tests.support.samples import zipped


def nested(count, files):
    return zipped(
        {f"{number}.zip": zipped({f"{number}-{name}": text for name, text in files.items()}) for number in range(count)}
    )


@pytest.fixture
def tight(monkeypatch):
    monkeypatch.setattr(archive, "MAX_FILES", 20)
    monkeypatch.setattr(archive, "MAX_BYTES", 100_000)


@pytest.mark.parametrize(
    "packed",
    [
        zipped({f"{number}.md": "" for number in range(21)}),
        nested(6, {f"{number}.md": "" for number in range(3)}),
        nested(3, {"a.md": "x" * 40_000}),
        zipped({"a.zip": nested(3, {"a.md": "x" * 40_000})}),
    ],
    ids=["many files", "many files in all", "many bytes in all", "deeper"],
)
def test_more_than_anyone_means_is_refused_however_it_is_packed(tight, tmp_path, packed):
    (tmp_path / "notes.zip").write_bytes(packed)
    with pytest.raises(UsageError, match=r"notes\.zip holds more than"), unpacked(tmp_path / "notes.zip", []):
        pass


def test_what_fits_in_all_is_unpacked(tight, tmp_path):
    (tmp_path / "notes.zip").write_bytes(nested(3, {"a.md": "x" * 10_000}))
    with unpacked(tmp_path / "notes.zip", []) as (folder, _, _):
        assert sorted(path.name for path in folder.rglob("*.md")) == ["0-a.md", "1-a.md", "2-a.md"]


def unpacked_texts(path, packed):
    path.write_bytes(packed)
    with unpacked(path, []) as (folder, _, _):
        return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def test_archives_in_an_archive_do_not_overwrite_the_files_of_each_other(tmp_path):
    packed = zipped(
        {f"{name}.zip": zipped({"README.md": name, "same.md": "same"}) for name in "cab"} | {"README.md": "own"}
    )
    assert unpacked_texts(tmp_path / "notes.zip", packed) == {
        "README.md": "own",
        "README (2).md": "a",
        "README (3).md": "b",
        "README (4).md": "c",
        "same.md": "same",
    }


def test_a_file_and_a_folder_of_the_same_name_are_both_unpacked(tmp_path):
    packed = zipped({"a": "file", "a/b": "inside", "a/c": "beside", "d/e": "first", "d": "second"})
    assert unpacked_texts(tmp_path / "notes.zip", packed) == {
        "a": "file",
        "a (2)/b": "inside",
        "a (2)/c": "beside",
        "d/e": "first",
        "d (2)": "second",
    }


def test_an_archive_that_holds_one_of_its_own_name_is_unpacked(tmp_path):
    packed = zipped({"notes.zip": zipped({"notes.zip": zipped({"a.md": "deepest"})})})
    assert unpacked_texts(tmp_path / "notes.zip", packed) == {"a.md": "deepest"}
