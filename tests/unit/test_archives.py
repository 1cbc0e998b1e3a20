"""An archive of archives is unpacked as long as all of it together is what anyone means."""

from __future__ import annotations

import io
import zipfile

import pytest

from kb_cli.runtime.exit_codes import UsageError
from kb_cli.sync import archive
from kb_cli.sync.archive import unpacked


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as content:
        for name, text in files.items():
            content.writestr(name, text)
    return packed.getvalue()


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
