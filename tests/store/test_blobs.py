"""Behaviour of every place for files: a folder, a shared folder, a bucket of S3, the database."""

from __future__ import annotations

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kb.blobs.folder import FolderBlobs, SharedFolder
from kb.blobs.protocol import BLOCK_SIZE, KEPT, STAGED, Blob, kept_as, staged_as
from kb.blobs.scratch import Blocks
from kb.documents.blob_place import MARKER
from tests.support.blobs import BUCKET, s3_server
from tests.support.spaces import space
from tests.support.stores import TRIED

PLACES = ["folder", "shared"] + (["s3", "database"] if "postgres" in TRIED else [])
LARGE = os.urandom(2 * BLOCK_SIZE) * 9 + b"end"
"""More than is held in memory, or sent in one part."""


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=PLACES)
def blobs(request, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    match request.param:
        case "folder":
            yield FolderBlobs(tmp_path / "data")
        case "shared":
            (tmp_path / "shared").mkdir()
            shared = SharedFolder(tmp_path / "shared", MARKER)
            shared.put(MARKER, io.BytesIO(b"id"))
            yield shared
        case "s3":
            from kb.blobs.s3 import S3Blobs

            for name, value in request.getfixturevalue("s3").environment.items():
                monkeypatch.setenv(name, value)
            yield S3Blobs(f"s3://{BUCKET}/{tmp_path.name}", tmp_path / "scratch")
        case "database":
            from kb.store.postgres.store import PostgresStore
            from tests.support.postgres import database_url

            store = PostgresStore(database_url(tmp_path), space(8))
            yield store.blobs(tmp_path / "scratch")
            store.close()


def put(blobs, name, content=b"content"):
    blobs.put(name, io.BytesIO(content))


def read(blobs, name):
    found = blobs.open(name)
    content = b"".join(found.blocks)
    assert found.size == len(content)
    return content


def names(blobs, prefix):
    return sorted(blob.name for blob in blobs.list(prefix))


@pytest.mark.parametrize(
    "content", [b"", b"content", b"x" * BLOCK_SIZE, LARGE], ids=["none", "some", "a block", "much"]
)
def test_what_is_put_is_read_as_it_was(blobs, content):
    put(blobs, staged_as("a"), content)
    assert read(blobs, staged_as("a")) == content
    assert blobs.size(staged_as("a")) == len(content)
    with blobs.local(staged_as("a")) as path:
        assert path.read_bytes() == content


def test_blocks_of_any_length_are_put_as_they_are(blobs):
    lengths = (BLOCK_SIZE + BLOCK_SIZE // 2, 7, 3 * BLOCK_SIZE, BLOCK_SIZE - 1)
    blobs.put(staged_as("a"), Blocks(os.urandom(length) for length in lengths))
    assert len(read(blobs, staged_as("a"))) == sum(lengths)


def test_a_folder_that_is_named_relatively_is_listed_as_any(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blobs = FolderBlobs(Path())
    put(blobs, kept_as("ab" * 32))
    assert names(blobs, KEPT) == [kept_as("ab" * 32)]


@pytest.mark.parametrize("name", ["../secret", "files/../../secret", "{folder}/secret"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_no_name_leads_out_of_a_folder(tmp_path, name, is_shared):
    secret, name = tmp_path / "secret", name.format(folder=tmp_path)
    secret.write_text("secret")
    blobs = SharedFolder(tmp_path / "data", MARKER) if is_shared else FolderBlobs(tmp_path / "data")
    put(blobs, MARKER)
    put(blobs, staged_as("a"))
    for act in (blobs.open, lambda name: blobs.copy({name: staged_as("b")}), lambda name: put(blobs, name)):
        with pytest.raises(FileNotFoundError):
            act(name)
    for act in (
        lambda: blobs.remove([name]),
        lambda: blobs.copy({staged_as("a"): name}),
        lambda: list(blobs.list(name)),
    ):
        with pytest.raises(FileNotFoundError):
            act()
    with pytest.raises(FileNotFoundError), blobs.local(name):
        pass
    assert secret.read_text() == "secret"


def test_what_is_fetched_to_be_read_is_removed_afterwards(blobs, tmp_path):
    put(blobs, staged_as("a"))
    with pytest.raises(RuntimeError), blobs.local(staged_as("a")):
        raise RuntimeError
    assert list((tmp_path / "scratch").iterdir()) == []
    assert read(blobs, staged_as("a")) == b"content"


def test_what_is_not_there_is_not_found(blobs):
    assert blobs.size(staged_as("none")) is None
    for act in (blobs.open, lambda name: blobs.copy({name: kept_as("ab" * 32)})):
        with pytest.raises(FileNotFoundError):
            act(staged_as("none"))
    with pytest.raises(FileNotFoundError), blobs.local(staged_as("none")):
        pass
    blobs.remove([staged_as("none")])
    assert names(blobs, KEPT) == []


def test_a_copy_stays_when_the_first_goes_and_goes_itself(blobs):
    put(blobs, staged_as("a"), LARGE)
    kept = kept_as("ab" * 32)
    for _ in range(2):
        blobs.copy({staged_as("a"): kept})
    blobs.remove([staged_as("a"), staged_as("none")])
    assert blobs.size(staged_as("a")) is None
    assert read(blobs, kept) == LARGE
    blobs.remove([kept])
    assert names(blobs, "") in ([], [MARKER])


def test_blobs_are_listed_with_size_and_age(blobs):
    for name in ("a", "b"):
        put(blobs, staged_as(name))
    blobs.copy({staged_as("a"): kept_as("ab" * 32)})
    assert names(blobs, STAGED) == [staged_as("a"), staged_as("b")]
    [kept] = blobs.list(KEPT)
    assert kept == Blob(kept_as("ab" * 32), 7, kept.age)
    assert -60 < kept.age < 600


def test_what_was_not_written_whole_is_not_there(blobs):
    class Broken(io.BytesIO):
        def read(self, size=-1, /):
            if self.tell() > BLOCK_SIZE:
                raise ValueError("the sender is gone")
            return super().read(size)

    with pytest.raises(ValueError, match="gone"):
        blobs.put(staged_as("a"), Broken(LARGE))
    assert blobs.size(staged_as("a")) is None
    assert names(blobs, STAGED) == []


def test_many_threads_put_read_and_remove_at_once(blobs):
    def use(number):
        content = f"{number}".encode() * 1000
        put(blobs, staged_as(f"{number}"), content)
        blobs.copy({staged_as(f"{number}"): kept_as("ab" * 32)})
        assert read(blobs, staged_as(f"{number}")) == content
        blobs.remove([staged_as(f"{number}")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))
    assert names(blobs, STAGED) == []
    assert len(read(blobs, kept_as("ab" * 32))) >= 1000


def test_a_content_whose_names_go_at_once_goes_too(blobs):
    """In the database two names of a content may be removed at the same time."""
    for _ in range(20):
        put(blobs, staged_as("a"))
        blobs.copy({staged_as("a"): staged_as("b")})
        barrier = threading.Barrier(2)

        def remove(name, barrier=barrier):
            barrier.wait()
            blobs.remove([staged_as(name)])

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(remove, "ab"))
    assert names(blobs, STAGED) == []
    if hasattr(blobs, "_connect"):
        with blobs._connect() as connection:
            assert connection.execute("SELECT count(*) FROM blob_contents").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM blob_blocks").fetchone() == (0,)
