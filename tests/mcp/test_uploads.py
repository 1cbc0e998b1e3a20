from __future__ import annotations

import base64
import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from kb.api.errors import DiskFull, Invalid, NotFound, SettingError, TooLarge
from kb_mcp.upload_chunks import MAX_CHUNK
from kb_mcp.upload_store import LIFETIME_SECONDS, UploadLimits, UploadStore
from tests.support.disks import filled, small_disk


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def uploads(clock, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = UploadStore(UploadLimits(10_000_000, 30_000_000), clock=clock)
    yield opened
    opened.close()
    assert list(tmp_path.iterdir()) == []


def encoded(raw):
    return base64.b64encode(raw).decode()


def staged(folder):
    """What is there of uploads."""
    return [path for path in folder.rglob("*") if path.name not in ("lock",) and path.parent != folder]


def whole(uploads, upload_id, digest=""):
    upload, file = uploads.take(upload_id, digest)
    with file:
        content = file.read()
    uploads.discard(upload)
    return content


@pytest.mark.requirement("G-8")
def test_chunks_in_any_order_and_sent_again_make_the_file(uploads):
    upload_id = uploads.start("a.txt", 9, ["t"])
    for index, raw in ((2, b"ccc"), (0, b"xxx"), (1, b"bbb"), (0, b"aaa")):
        uploads.add_chunk(upload_id, index, encoded(raw))
    assert whole(uploads, upload_id) == b"aaabbbccc"


@pytest.mark.requirement("G-8")
def test_a_chunk_sent_again_replaces_itself_also_with_another_size(uploads):
    upload_id = uploads.start("a.txt", 4, [])
    assert uploads.add_chunk(upload_id, 0, encoded(b"abcd")) == (4, 4)
    assert uploads.add_chunk(upload_id, 0, encoded(b"x")) == (1, 4)
    uploads.add_chunk(upload_id, 1, encoded(b"yz!"))
    assert whole(uploads, upload_id) == b"xyz!"


@pytest.mark.requirement("G-9")
def test_an_upload_that_is_taken_is_over_and_leaves_nothing(uploads, clock, tmp_path):
    upload_id = uploads.start("a.txt", 3, [])
    uploads.add_chunk(upload_id, 0, encoded(b"abc"))
    upload, file = uploads.take(upload_id)
    with pytest.raises(NotFound, match="kb_upload_start"):
        uploads.take(upload_id)
    clock.now += LIFETIME_SECONDS
    uploads.expire()
    with file:
        assert file.read() == b"abc"
    uploads.discard(upload)
    assert staged(tmp_path / next(tmp_path.iterdir()).name) == []


@pytest.mark.requirement("G-10")
def test_an_upload_that_takes_too_long_is_gone_with_its_chunks(uploads, clock, tmp_path):
    [folder] = tmp_path.iterdir()
    late = uploads.start("a.txt", 3, [])
    uploads.add_chunk(late, 0, encoded(b"abc"))
    clock.now += LIFETIME_SECONDS - 1
    fresh = uploads.start("b.txt", 3, [])
    uploads.expire()
    assert (folder / late).is_dir()
    clock.now += 1
    with pytest.raises(NotFound, match="more than ten minutes"):
        uploads.add_chunk(late, 0, encoded(b"abc"))
    uploads.expire()
    assert not (folder / late).exists()
    uploads.add_chunk(fresh, 0, encoded(b"abc"))


@pytest.mark.requirement("G-10")
def test_what_a_crash_left_of_an_upload_harms_no_other_and_is_removed(tmp_path):
    uploads = UploadStore(UploadLimits(10, 10_000_000), tmp_path)
    broken, bare = uploads.start("a.txt", 3, []), uploads.start("b.txt", 3, [])
    half, foreign = tmp_path / f"{uuid4()}.new", tmp_path / "holiday pictures"
    (tmp_path / broken / "upload.json").write_bytes(b"")
    (tmp_path / bare / "upload.json").unlink()
    half.mkdir()
    foreign.mkdir()
    for attempt in (lambda: uploads.add_chunk(broken, 0, encoded(b"abc")), lambda: uploads.take(bare)):
        with pytest.raises(NotFound, match="no upload"):
            attempt()
    good = uploads.start("c.txt", 3, [])
    uploads.expire()
    assert (tmp_path / broken).is_dir()
    for left in (tmp_path / broken, tmp_path / bare, half, foreign):
        os.utime(left, (1, 1))
    uploads.expire()
    assert {path.name for path in tmp_path.iterdir()} == {"lock", good, foreign.name}


def test_a_staging_folder_that_was_cleaned_up_is_made_again_for_this_user_alone(uploads, tmp_path):
    [folder] = tmp_path.iterdir()
    folder.rmdir()
    uploads.expire()
    upload_id = uploads.start("a.txt", 3, [])
    uploads.add_chunk(upload_id, 0, encoded(b"abc"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert whole(uploads, upload_id) == b"abc"


def test_a_full_disk_is_told_and_a_chunk_can_be_sent_again_when_there_is_room(tmp_path):
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        uploads = UploadStore(UploadLimits(10_000_000, 20_000_000), disk / "staging")
        upload_id = uploads.start("a.txt", 1_000_000, [])
        with filled(disk):
            with pytest.raises(DiskFull, match=r"^The gateway's disk is full. .*send chunk_index 0 again"):
                uploads.add_chunk(upload_id, 0, encoded(b"x" * 1_000_000))
            with pytest.raises(DiskFull, match="try again"):
                uploads.start("b.txt", 1_000_000, [])
            assert [path.name for path in (disk / "staging" / upload_id).iterdir()] == ["upload.json"]
        uploads.add_chunk(upload_id, 0, encoded(b"x" * 1_000_000))
        assert whole(uploads, upload_id) == b"x" * 1_000_000


@pytest.mark.requirement("G-10")
@pytest.mark.parametrize("upload_id", ["", "x", "..", "../lock", "a" * 10_000, "00000000-0000-0000-0000-00000000000"])
def test_an_unknown_upload_is_an_error_that_says_so(uploads, upload_id):
    for attempt in (lambda: uploads.add_chunk(upload_id, 0, encoded(b"a")), lambda: uploads.take(upload_id)):
        with pytest.raises(NotFound, match="no upload") as refused:
            attempt()
        assert len(str(refused.value)) < 300


def test_more_than_was_announced_is_refused_and_not_kept(uploads):
    upload_id = uploads.start("a.txt", 4, [])
    uploads.add_chunk(upload_id, 0, encoded(b"abc"))
    with pytest.raises(Invalid, match="total_size is 4"):
        uploads.add_chunk(upload_id, 1, encoded(b"de"))
    uploads.add_chunk(upload_id, 1, encoded(b"d"))
    assert whole(uploads, upload_id) == b"abcd"


@pytest.mark.parametrize("data", ["###", "YWJj*", "YWJ", "é", "", "\n"])
def test_garbled_base64_is_refused(uploads, data):
    upload_id = uploads.start("a.txt", 4, [])
    with pytest.raises(Invalid, match=r"^data: "):
        uploads.add_chunk(upload_id, 0, data)


def test_base64_in_lines_is_read(uploads):
    raw = bytes(range(256))
    upload_id = uploads.start("a.bin", len(raw), [])
    uploads.add_chunk(upload_id, 0, base64.encodebytes(raw).decode())
    assert whole(uploads, upload_id) == raw


@pytest.mark.requirement("G-8")
def test_a_chunk_that_was_garbled_on_its_way_is_told_by_its_digest_and_can_be_sent_again(uploads):
    right = hashlib.sha256(b"abc").hexdigest()
    upload_id = uploads.start("a.txt", 3, [])
    with pytest.raises(Invalid, match=r"^sha256: .*send chunk_index 0 again"):
        uploads.add_chunk(upload_id, 0, encoded(b"abd"), right)
    uploads.add_chunk(upload_id, 0, encoded(b"abc"), right.upper())
    assert whole(uploads, upload_id, right) == b"abc"


@pytest.mark.requirement("G-9")
def test_a_file_with_another_digest_than_announced_is_not_handed_over(uploads, tmp_path):
    upload_id = uploads.start("a.txt", 3, [])
    uploads.add_chunk(upload_id, 0, encoded(b"abd"))
    with pytest.raises(Invalid, match=r"^sha256: .*kb_upload_start"):
        uploads.take(upload_id, hashlib.sha256(b"abc").hexdigest())
    assert staged(next(tmp_path.iterdir())) == []


def test_files_and_chunks_have_their_limits(uploads):
    with pytest.raises(TooLarge, match="KB_MCP_MAX_UPLOAD_MB"):
        uploads.start("a.txt", 10_000_001, [])
    upload_id = uploads.start("a.txt", 10_000_000, [])
    with pytest.raises(Invalid, match="1 to"):
        uploads.add_chunk(upload_id, 0, encoded(b"x" * (MAX_CHUNK + 1)))


def test_all_uploads_together_have_their_limit_however_small_they_are(uploads, clock):
    for _ in range(28):
        uploads.start("a.txt", 1, [])
    with pytest.raises(TooLarge, match="too much data is being uploaded"):
        uploads.start("a.txt", 1, [])
    clock.now += LIFETIME_SECONDS
    uploads.expire()
    uploads.start("a.txt", 1, [])


def test_the_limit_of_all_holds_when_many_begin_at_once(uploads):
    def begin(_):
        try:
            return uploads.start("a.txt", 10_000_000, [])
        except TooLarge:
            return None

    with ThreadPoolExecutor(16) as pool:
        assert len([each for each in pool.map(begin, range(64)) if each]) == 3


def test_two_processes_share_a_folder_and_each_upload_is_taken_once(tmp_path):
    first, second = (UploadStore(UploadLimits(1_000_000, 2_000_000), tmp_path / "staging") for _ in range(2))
    upload_id = first.start("a.txt", 6, ["t"])
    first.add_chunk(upload_id, 1, encoded(b"def"))
    assert second.add_chunk(upload_id, 0, encoded(b"abc")) == (6, 6)
    first.close()
    upload, file = second.take(upload_id)
    with file:
        assert (file.read(), upload.tags) == (b"abcdef", ["t"])
    with pytest.raises(NotFound):
        first.take(upload_id)
    second.discard(upload)


def test_staged_files_are_for_this_user_alone(uploads, tmp_path):
    uploads.start("a.txt", 3, [])
    [folder] = tmp_path.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir()) if path.is_dir()] == [0o700] * 2


def test_a_shared_folder_is_made_for_this_user_alone_or_refused(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    UploadStore(UploadLimits(1, 1), open_to_all)
    assert stat.S_IMODE(open_to_all.stat().st_mode) == 0o700
    shared_by_all = tmp_path / "tmp"
    shared_by_all.mkdir()
    shared_by_all.chmod(0o1777)
    with pytest.raises(SettingError, match="KB_MCP_UPLOAD_DIR: other users can write to"):
        UploadStore(UploadLimits(1, 1), shared_by_all)
    assert stat.S_IMODE(shared_by_all.stat().st_mode) == 0o1777
    (tmp_path / "file").touch()
    with pytest.raises(SettingError, match="KB_MCP_UPLOAD_DIR"):
        UploadStore(UploadLimits(1, 1), tmp_path / "file")
