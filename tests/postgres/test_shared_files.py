"""Files of several engines with one database: every engine reads, serves and draws them, and none is lost."""

from __future__ import annotations

import io
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256

import psycopg
import pytest

from kb.access.keyring import KeyFile, Keyring, take_in, token_digest
from kb.api.errors import FilesUnavailable, KeyExists, NotFound, SettingError, StoreUnavailable
from kb.api.rights import Limit
from kb.blobs.folder import FolderBlobs
from kb.blobs.protocol import KEPT, STAGED, kept_as, staged_as
from kb.documents.blob_place import bring_in, open_blobs
from kb.documents.originals import Originals
from kb.documents.staging import AT_ONCE, STRAY_SECONDS, sweep_staged
from kb.store.postgres.store import QUEUING, WRITING, PostgresStore
from kb.store.rows import NewJob
from tests.access.conftest import Api
from tests.conftest import KEY
from tests.store.test_store import add
from tests.support.blobs import BUCKET, s3_server
from tests.support.disks import filled, small_disk
from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.support.postgres import database_url
from tests.support.spaces import space

pytestmark = pytest.mark.postgres
OTHER = pdf("The garden is shared.")
PDF = pdf("The lease ends in March 2028.", "The deposit is paid back.")


@pytest.fixture
def url(tmp_path):
    return database_url(tmp_path)


@pytest.fixture
def s3(tmp_path):
    with s3_server(tmp_path / "s3") as server:
        yield server


@pytest.fixture
def place(request, tmp_path):
    """The settings of a place for files."""
    if request.param == "shared folder":
        (tmp_path / "srv").mkdir()
        return {"KB_BLOB_URL": f"file://{tmp_path}/srv"}
    if request.param == "S3":
        return request.getfixturevalue("s3").environment | {"KB_BLOB_URL": f"s3://{BUCKET}/engines"}
    return {}


@contextmanager
def nothing_claimed(url):
    """Keep all engines from taking a job during the block."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (QUEUING,))
        yield


@contextmanager
def engine(url):
    with closing(PostgresStore(url, space(8))) as store:
        yield store


def ended(api, job_id):
    job = api.ok("GET", f"jobs/{job_id}?wait=60")
    return job if job["status"] in ("done", "failed") else None


def blocks(blobs, name):
    return b"".join(blobs.open(name).blocks)


@pytest.mark.parametrize("place", ["database", "shared folder", "S3"], indirect=True)
def test_a_file_is_read_served_and_drawn_by_another_engine_when_the_one_that_got_it_is_gone(
    start_server, url, place, tmp_path
):
    settings = {"KB_DATABASE_URL": url} | place
    with start_server(tmp_path / "b", **settings) as b:
        with nothing_claimed(url), start_server(tmp_path / "a", **settings) as a:
            accepted = Api(a.url, None).ok("POST", "jobs", files={"file": ("lease.pdf", PDF)})
            a.kill()
        shutil.rmtree(tmp_path / "a")
        api = Api(b.url, None)
        job = eventually("the job has ended", lambda: ended(api, accepted["job_id"]))
        assert job["status"] == "done", job
        path = f"documents/{job['document_id']}"
        assert api("GET", f"{path}/file").content == PDF
        assert api("GET", f"{path}/file").headers["Content-Length"] == str(len(PDF))
        for _ in range(2):
            assert api("GET", f"{path}/pages/2.png").content.startswith(b"\x89PNG")
        assert api.ok("GET", "storage")["originals"] == len(PDF)
        api.ok("DELETE", f"{path}?purge=true")
        assert api("GET", f"{path}/file").status_code == 404
        left = [each for each in (tmp_path / "b").rglob("staging/*") if each.is_file()]
        eventually("no file is left", lambda: not [each for each in left if each.exists()])
    with engine(url) as store:
        blobs = opened(store, tmp_path, place)
        assert [*blobs.list(KEPT), *blobs.list(STAGED)] == []


def opened(store, tmp_path, place):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in place.items():
            patch.setenv(name, value)
        (tmp_path / "looks/staging").mkdir(parents=True, exist_ok=True)
        return open_blobs(place.get("KB_BLOB_URL"), store, tmp_path / "looks")


def test_while_s3_is_down_uploads_are_told_to_come_back_files_wait_and_all_else_goes_on(
    start_server, url, s3, tmp_path
):
    settings = {"KB_DATABASE_URL": url, "KB_BLOB_URL": f"s3://{BUCKET}"} | s3.environment
    with start_server(tmp_path / "a", **settings) as a:
        api = Api(a.url, None)
        with nothing_claimed(url):
            waiting = api.ok("POST", "jobs", files={"file": ("lease.pdf", PDF)}, data={"source_path": "/lease.pdf"})
            after = api.ok("POST", "jobs", json={"text": "After the lease.", "source_path": "/lease.pdf"})
            s3.stop()
        assert api.found("lease") == set()
        note = api.note("A note while the bucket is away.")
        assert api.found("bucket") == {note}
        refused = api("POST", "jobs", files={"file": ("other.txt", b"text")})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert refused.json()["detail"].startswith("The file storage does not respond")
        for job_id in (waiting["job_id"], after["job_id"]):
            assert api.ok("GET", f"jobs/{job_id}")["status"] in ("queued", "running")
        s3.start()
        job = eventually("the job has ended", lambda: ended(api, waiting["job_id"]))
        assert job["status"] == "done", job
        assert eventually("the note has, too", lambda: ended(api, after["job_id"]))["status"] == "done"
        path = f"documents/{api.file('other.pdf', OTHER)['document_id']}"
        assert api("GET", f"{path}/file").content == OTHER
        s3.stop()
        assert api("GET", f"{path}/file").status_code == 503
        api.ok("DELETE", f"{path}?purge=true")
        s3.start()
        assert api.file("again.txt", b"text that comes later")["status"] == "done"
        eventually("the purged file is gone", lambda: not kept_in(s3.folder / BUCKET, sha256(OTHER).hexdigest()))


def kept_in(folder, digest):
    return (folder / kept_as(digest)).exists()


def test_an_engine_starts_while_s3_is_down_and_reads_files_when_it_is_back(start_server, url, s3, tmp_path):
    settings = {"KB_DATABASE_URL": url, "KB_BLOB_URL": f"s3://{BUCKET}"} | s3.environment
    with start_server(tmp_path / "a", **settings) as a, nothing_claimed(url):
        accepted = Api(a.url, None).ok("POST", "jobs", files={"file": ("lease.pdf", PDF)})
        a.kill()
    s3.stop()
    with start_server(tmp_path / "a", **settings) as a:
        assert Api(a.url, None).note("Here again.")
        s3.start()
        assert eventually("it has ended", lambda: ended(Api(a.url, None), accepted["job_id"]))["status"] == "done"


def test_a_shared_folder_that_is_gone_or_full_loses_nothing(start_server, url, tmp_path):
    with small_disk(tmp_path / "srv", 8) as disk:
        (disk / "kb").mkdir()
        with start_server(tmp_path / "a", KB_DATABASE_URL=url, KB_BLOB_URL=f"file://{disk}/kb") as a:
            api = Api(a.url, None)
            job = api.file("lease.pdf", PDF)
            path = f"documents/{job['document_id']}/file"
            with filled(disk):
                full = api("POST", "jobs", files={"file": ("other.txt", b"text " * 100_000)})
                assert (full.status_code, full.headers["Retry-After"]) == (507, "60")
                assert api.note("There is room for notes.")
            (disk / "kb").rename(disk / "away")
            for answer in (api("POST", "jobs", files={"file": ("a.txt", b"text")}), api("GET", path)):
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
                assert "Check that it is mounted" in answer.json()["detail"]
            (disk / "kb").mkdir()  # as a mount point is there without what should be mounted
            assert api("POST", "jobs", files={"file": ("a.txt", b"text")}).status_code == 503
            assert list((disk / "kb").iterdir()) == []
            (disk / "kb").rmdir()
            (disk / "away").rename(disk / "kb")
            assert api("GET", path).content == PDF
            assert api.file("a.txt", b"text")["status"] == "done"


def test_a_place_is_one_databases_alone(url, tmp_path):
    (tmp_path / "srv").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    outside, empty = f"file://{tmp_path}/srv", f"file://{tmp_path}/empty"
    with engine(url) as store, engine(database_url(tmp_path / "other")) as other:
        with pytest.raises(SettingError, match=r"must be s3://bucket/prefix or file:///folder"):
            open_blobs("ftp://host/folder", store, tmp_path)
        before = open_blobs(None, store, tmp_path)
        for _ in range(2):
            open_blobs(outside, store, tmp_path)
        with pytest.raises(FilesUnavailable, match="moved to another place"):
            before.put(staged_as("a"), io.BytesIO(b"content"))
        for wanted, why in ((None, "storage outside the database"), (empty, "Is it mounted, and")):
            with pytest.raises(SettingError, match=why):
                open_blobs(wanted, store, tmp_path)
        with pytest.raises(SettingError, match="of another database are there"):
            open_blobs(outside, other, tmp_path)
        open_blobs(None, other, tmp_path).put(staged_as("a"), io.BytesIO(b"content"))
        with pytest.raises(SettingError, match="kb cannot move them out"):
            open_blobs(empty, other, tmp_path)
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_bucket_that_is_not_there_is_told(url, s3, tmp_path, monkeypatch):
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with engine(url) as store:
        blobs = open_blobs("s3://absent/prefix", store, tmp_path)
        for act in (lambda: blobs.put(staged_as("a"), io.BytesIO(b"content")), lambda: list(blobs.list(STAGED))):
            with pytest.raises(FilesUnavailable):
                act()
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another one")
        with pytest.raises(FilesUnavailable):
            open_blobs(f"s3://{BUCKET}", store, tmp_path).size(staged_as("a"))


def test_a_place_that_never_was_there_is_told_and_nothing_is_made_in_its_stead(url, tmp_path):
    with engine(url) as store:
        blobs = open_blobs(f"file://{tmp_path}/absent", store, tmp_path)
        with pytest.raises(FilesUnavailable):
            blobs.put(staged_as("a"), io.BytesIO(b"content"))
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("place", ["database", "shared folder"], indirect=True)
def test_only_what_is_old_and_nobody_needs_is_swept(url, place, tmp_path):
    with engine(url) as store:
        blobs = opened(store, tmp_path, place)
        originals = Originals(blobs, keep=True)
        add(store, "one")
        kept = {name: sha256(name.encode()).hexdigest() for name in ("old", "young")}
        staged = {name: sha256(name.encode()).hexdigest()[:32] for name in ("old", "young", "needed")} | {"not": "ours"}
        for name in staged:
            blobs.put(staged_as(staged[name]), io.BytesIO(name.encode()))
            if name in kept:
                blobs.copy({staged_as(staged[name]): kept_as(kept[name])})
        with store.write() as tx:
            tx.jobs.add(NewJob("file", staged=staged["needed"], filename="a.txt"))
        for name in ("old", "needed", "not"):
            make_old(store, blobs, staged_as(staged[name]))
        make_old(store, blobs, kept_as(kept["old"]))
        sweep_staged(store, blobs)
        originals.sweep_strays(store)
        assert {blob.name for blob in blobs.list(STAGED)} == {
            staged_as(staged[name]) for name in ("young", "needed", "not")
        }
        assert [blob.name for blob in blobs.list(KEPT)] == [kept_as(kept["young"])]


def test_a_kept_file_that_is_queued_again_is_not_swept_before_its_job_is_there(url, tmp_path):
    """It is a hard link, and as old as the first one."""
    (tmp_path / "srv").mkdir()
    with engine(url) as store, engine(url) as other:
        blobs = opened(store, tmp_path, {"KB_BLOB_URL": f"file://{tmp_path}/srv"})
        kept, again = kept_as(sha256(b"kept").hexdigest()), "a" * 32
        blobs.put(kept, io.BytesIO(b"kept"))
        make_old(store, blobs, kept)
        with ThreadPoolExecutor(1) as pool:
            with store.write() as tx:
                blobs.copy({kept: staged_as(again)})
                sweeping = pool.submit(sweep_staged, other, blobs)
                wait([sweeping], timeout=1)  # it either waits or is done
                tx.jobs.add(NewJob("file", staged=again, filename="a.md"))
            sweeping.result(timeout=60)
        assert blobs.size(staged_as(again)) == 4


def test_a_sweep_ends_with_its_transaction_for_others_may_keep_the_same_files_then(url, tmp_path):
    class Slow(FolderBlobs):
        """A place that takes so long that PostgreSQL ends the transaction."""

        def remove(self, names):
            super().remove(names)
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state LIKE 'idle in%'")

    blobs = Slow(tmp_path / "files")
    with engine(url) as store:
        add(store, "one")
        for number in range(3 * AT_ONCE):
            blobs.put(kept_as(sha256(str(number).encode()).hexdigest()), io.BytesIO(b"kept"))
        with pytest.raises(StoreUnavailable):
            Originals(blobs, keep=True).sweep_strays(store)
        assert len(list(blobs.list(KEPT))) == 2 * AT_ONCE
        Originals(FolderBlobs(tmp_path / "files"), keep=True).sweep_strays(store)
    assert list(blobs.list(KEPT)) == []


def make_old(store, blobs, name):
    if isinstance(blobs, FolderBlobs):
        old = time.time() - STRAY_SECONDS - 60
        os.utime(blobs.path(name), (old, old))
    else:
        with store.write() as tx:
            old = "UPDATE blobs SET created_at = now() - interval '2 days' WHERE name = %s"
            tx.connection.execute(old, (name,))


def test_files_of_a_data_directory_are_brought_to_where_every_engine_has_them(url, tmp_path):
    local = FolderBlobs(tmp_path / "databases")
    digest = sha256(b"kept").hexdigest()
    local.put(staged_as("a"), io.BytesIO(b"staged"))
    local.put(kept_as(digest), io.BytesIO(b"kept"))
    (tmp_path / "place").write_text("here")
    with engine(url) as store:
        with store.write() as tx:
            tx.jobs.add(NewJob("file", staged="a", filename="a.txt"))
            tx.connection.execute("UPDATE jobs SET staged_at = 'here'")
        blobs = open_blobs(None, store, tmp_path / "databases")
        for _ in range(2):
            bring_in(store, blobs, tmp_path / "databases", tmp_path)
        assert (blocks(blobs, staged_as("a")), blocks(blobs, kept_as(digest))) == (b"staged", b"kept")
        assert [*local.list(STAGED), *local.list(KEPT)] == []
        with store.queue() as tx:
            assert [job.staged for job in tx.jobs.claim(9)] == ["a"]


def test_a_key_that_is_made_at_one_engine_is_good_at_the_other_and_refused_there_when_it_is_revoked(
    start_server, url, tmp_path
):
    settings = {"KB_DATABASE_URL": url, "KB_API_KEY": KEY}
    with start_server(tmp_path / "a", **settings) as a, start_server(tmp_path / "b", **settings) as b:
        admin, other = Api(a.url, KEY), Api(b.url, KEY)
        made = admin.ok("POST", "keys", json={"name": "reader", "right": "read", "tags": ["x"], "path": "/notes/"})
        reader = Api(b.url, made["key"])
        eventually("it is good there", lambda: reader("GET", "documents").status_code == 200)
        expected = {"name": "reader", "right": "read", "tags": ["x"], "path": "/notes/", "reads_all": False}
        assert reader.ok("GET", "key") == expected
        assert other("POST", "keys", json={"name": "reader"}).status_code == 409
        turned = other.ok("POST", "keys/reader/rotate", json={"grace_minutes": 0})
        eventually("the former one is refused", lambda: Api(a.url, made["key"])("GET", "documents").status_code == 401)
        assert Api(a.url, turned["key"])("GET", "documents").status_code == 200
        behalf = {"headers": {"KB-On-Behalf-Of": "reader"}}
        assert other("GET", "key", **behalf).json()["name"] == "reader"
        admin.ok("DELETE", "keys/reader")
        eventually("it is refused", lambda: Api(b.url, turned["key"])("GET", "documents").status_code == 401)
        eventually("so is who asks for it", lambda: other("GET", "key", **behalf).status_code == 403)
        assert other.ok("GET", "keys")["keys"] == []
        assert not (tmp_path / "a/keys.json").exists()


def test_of_keys_that_engines_make_by_one_name_at_once_one_is_made_with_its_rights(url):
    with engine(url) as one, engine(url) as other:
        for number in range(10):
            made = at_once(partial(make, one, "admin", f"key-{number}"), partial(make, other, "read", f"key-{number}"))
            [(key, token)] = [each for each in made if each]
            keyring = opened_keyring(one)
            assert keyring.identify(token_digest(token)).right == key.right
            assert keyring.named(key.name).digest == key.digest
            keyring.flush()


def make(store, right, name):
    with suppress(KeyExists):
        return opened_keyring(store).make(name, right, Limit())


def test_a_key_that_is_rotated_at_one_engine_and_revoked_at_another_at_once_is_none(url):
    with engine(url) as one, engine(url) as other:
        for _ in range(10):
            opened_keyring(one).make("turned", "read", Limit())
            at_once(partial(turn, one), partial(opened_keyring(other).revoke, "turned"))
            assert one.keys.all() == []


def test_of_two_who_rotate_a_key_at_two_engines_at_once_one_is_refused(start_server, url, tmp_path):
    settings = {"KB_DATABASE_URL": url, "KB_API_KEY": KEY}
    with start_server(tmp_path / "a", **settings) as a, start_server(tmp_path / "b", **settings) as b:
        Api(a.url, KEY).ok("POST", "keys", json={"name": "reader", "right": "read"})
        with closing(psycopg.connect(url)) as writer, ThreadPoolExecutor() as pool:
            writer.execute("SELECT pg_advisory_xact_lock(%s)", (WRITING,))
            rotate = [partial(Api(each.url, KEY), "POST", "keys/reader/rotate", json={}) for each in (a, b)]
            answers = [pool.submit(each) for each in rotate]
            waiting = "SELECT count(*) FROM pg_locks WHERE objid = %s AND NOT granted"
            eventually("both wait", lambda: writer.execute(waiting, (WRITING,)).fetchone() == (2,))
            writer.commit()
            one, other = sorted((each.result() for each in answers), key=lambda answer: answer.status_code)
        assert (one.status_code, other.status_code, other.json()["type"]) == (200, 409, "urn:kb:problem:key-rotated")
        assert Api(a.url, one.json()["key"])("GET", "documents").status_code == 200
        lines = Api(a.url, KEY).ok("GET", "audit")["lines"]
        assert [line["action"] for line in lines] == ["key-rotate", "key-make"]


def turn(store):
    with suppress(NotFound):
        keyring = opened_keyring(store)
        keyring.rotate(keyring.existing("turned"), timedelta())


def opened_keyring(store):
    keyring = Keyring()
    keyring.open(store.keys)
    return keyring


def at_once(*acts):
    barrier = threading.Barrier(len(acts))

    def act(each):
        barrier.wait()
        return each()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def test_a_file_of_keys_is_taken_in_once_and_gives_way_to_what_is_there(url, tmp_path, caplog):
    path = tmp_path / "keys.json"
    file = Keyring(KeyFile(path))
    _, token = file.make("of-the-file", "write", Limit(("x",), "/notes/"))
    file.make("both", "read", Limit())
    with engine(url) as store:
        keyring = Keyring()
        keyring.open(store.keys)
        there, _ = keyring.make("both", "admin", Limit())
        take_in(path, store.keys)
        assert not path.exists()
        keys = {key.name: key for key in store.keys.all()}
        assert keys == {"of-the-file": KeyFile(path.with_suffix(".json.taken")).all()[0], "both": there}
        take_in(path, store.keys)
        with engine(url) as other:
            second = Keyring()
            second.open(other.keys)
            assert second.identify(token_digest(token)).name == "of-the-file"
            second.flush()
        assert {key.name: bool(key.used_at) for key in store.keys.all()} == {"of-the-file": True, "both": False}
    assert "ignores those in the file: ['both']" in caplog.text
