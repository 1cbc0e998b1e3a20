"""An archive of archives is unpacked as long as all of it together is what anyone means, under the names that its maker saw."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest

from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync import zip_archive
from kb_cli.sync.zip_archive import unpacked
from kb_cli.sync.zip_name_encoding import guess
from tests.support.samples import zipped


def nested(count, files):
    return zipped(
        {f"{number}.zip": zipped({f"{number}-{name}": text for name, text in files.items()}) for number in range(count)}
    )


@pytest.fixture
def tight(monkeypatch):
    monkeypatch.setattr(zip_archive, "MAX_FILES", 20)
    monkeypatch.setattr(zip_archive, "MAX_BYTES", 100_000)


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
    with pytest.raises(UsageError, match=r"notes\.zip: it contains more than"), unpacked(tmp_path / "notes.zip", []):
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


def packed(path, names, extra=b""):
    """Write an archive with names as they are, without the mark of UTF-8."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, _ in enumerate(names):
            entry = zipfile.ZipInfo(chr(65 + number) * len(names[number]))
            entry.extra = extra
            archive.writestr(entry, f"text {number}")
    data = content.getvalue()
    for number, name in enumerate(names):
        data = data.replace(chr(65 + number).encode() * len(name), name)
    path.write_bytes(data)
    return path


def found(path, code_page=None):
    with unpacked(path, [], code_page) as archive:
        names = {file.relative_to(archive.folder).as_posix(): file.read_text() for file in archive.selection.files}
        return names, archive.guessed


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("gbk", ["新建文件夹/说明.txt", "图片.md", "readme.md"]),
        ("cp866", ["Отчёт за март.md", "ДОГОВОР.md"]),
        ("cp1251", ["Журнал работ.md", "План.md"]),
        ("cp932", ["請求書2024.md", "さくら.md"]),
        ("cp949", ["회의록.md", "견적서 최종.md"]),
        ("cp950", ["會議記錄.md", "台北旅行.md"]),
        ("cp852", ["Umowa najmu - październik.md", "Łódź.md"]),
        ("cp850", ["São Paulo.md", "Færøerne og Ølen.md"]),
        ("cp1252", ["Übersicht.md", "Größe.md"]),
        ("cp737", ["σημειώσεις.md", "Αναφορά.md"]),
        ("cp1250", ["Umowa najmu - październik.md", "Łódź.md"]),
        ("cp862", ["סיכום.md", "תמונות.md"]),
        ("utf-8", ["Überblick.md", "会议.md"]),
    ],
)
def test_one_code_page_is_guessed_for_all_names_in_an_archive(tmp_path, page, names):
    path = packed(tmp_path / "a.zip", [name.encode(page) for name in names])
    texts, guessed = found(path)
    assert texts == {name: f"text {number}" for number, name in enumerate(names)}
    assert guessed == {page}
    assert found(path) == (texts, guessed)


def test_what_someone_says_is_not_guessed(tmp_path):
    path = packed(tmp_path / "a.zip", ["סיכום.md".encode("cp862")])
    assert found(path, "cp862") == ({"סיכום.md": "text 0"}, set())


def test_names_that_were_right_stay_so(tmp_path):
    path = packed(tmp_path / "a.zip", ["Gerätehaus.md".encode("cp437"), b"plain.md"])
    assert found(path) == ({"Gerätehaus.md": "text 0", "plain.md": "text 1"}, set())


def test_a_name_that_is_stated_beside_is_taken_if_it_is_of_this_name(tmp_path):
    raw, name = "倉庫.md".encode("cp932"), "倉庫.md".encode()
    for crc, expected in ((zlib.crc32(raw), "倉庫.md"), (1, guess([raw]))):
        field = struct.pack("<HHBI", 0x7075, 5 + len(name), 1, crc) + name
        [only] = found(packed(tmp_path / "a.zip", [raw], field))[0]
        assert only == expected or crc == 1


def test_files_whose_names_become_one_are_all_kept(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (("../a.md", "one"), ("a.md", "two"), ("/a.md", "two")):
            archive.writestr(name, text)
    assert found(path)[0] == {"a.md": "one", "a (2).md": "two"}
