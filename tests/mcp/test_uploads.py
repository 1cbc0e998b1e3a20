from __future__ import annotations

import base64
import stat

import pytest

from kb.contract.errors import Invalid, NotFound, TooLarge
from kb_mcp.uploads import LIFETIME_SECONDS, MAX_CHUNK, Uploads


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
    opened = Uploads(10_000_000, clock)
    yield opened
    opened.close()
    assert list(tmp_path.iterdir()) == []


def encoded(raw):
    return base64.b64encode(raw).decode()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def whole(uploads, upload_id):
    upload, file = uploads.take(upload_id)
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
    assert files_in(tmp_path) == []


@pytest.mark.requirement("G-10")
def test_an_upload_that_takes_too_long_is_gone_with_its_chunks(uploads, clock, tmp_path):
    late, fresh = uploads.start("a.txt", 3, []), None
    uploads.add_chunk(late, 0, encoded(b"abc"))
    clock.now += LIFETIME_SECONDS - 1
    fresh = uploads.start("b.txt", 3, [])
    uploads.expire()
    assert len(files_in(tmp_path)) == 1
    clock.now += 1
    uploads.expire()
    assert files_in(tmp_path) == []
    with pytest.raises(NotFound, match="more than ten minutes"):
        uploads.add_chunk(late, 0, encoded(b"abc"))
    uploads.add_chunk(fresh, 0, encoded(b"abc"))


def test_more_than_was_announced_is_refused_and_not_kept(uploads):
    upload_id = uploads.start("a.txt", 4, [])
    uploads.add_chunk(upload_id, 0, encoded(b"abc"))
    with pytest.raises(Invalid, match="total_size was 4"):
        uploads.add_chunk(upload_id, 1, encoded(b"de"))
    uploads.add_chunk(upload_id, 1, encoded(b"d"))
    assert whole(uploads, upload_id) == b"abcd"


@pytest.mark.parametrize("data", ["###", "YWJj*", "YWJ", "é"])
def test_garbled_base64_is_refused(uploads, data):
    upload_id = uploads.start("a.txt", 4, [])
    with pytest.raises(Invalid, match="base64"):
        uploads.add_chunk(upload_id, 0, data)


def test_files_and_chunks_have_their_limits(uploads):
    with pytest.raises(TooLarge, match="KB_MCP_MAX_UPLOAD_MB"):
        uploads.start("a.txt", 10_000_001, [])
    upload_id = uploads.start("a.txt", 10_000_000, [])
    with pytest.raises(Invalid, match="at most"):
        uploads.add_chunk(upload_id, 0, encoded(b"x" * (MAX_CHUNK + 1)))


def test_staged_files_are_for_this_user_alone(uploads, tmp_path):
    uploads.start("a.txt", 3, [])
    [folder] = tmp_path.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())] == [0o700, 0o700]
