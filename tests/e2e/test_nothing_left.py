"""Deleted or replaced content is gone from the disk, not only from the answers."""

from __future__ import annotations

import io
from email.message import EmailMessage

import apsw
import pytest

from kb.client.client import EngineClient
from tests.http.conftest import added, finished, until_idle
from tests.support.eventually import eventually_async

FILLER = "The clerks of the counting house kept their ledgers in good order. " * 40


def holders(folder, *words):
    """Which files of a folder hold which of the words."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, word) for path in paths for word in words if word.encode() in path.read_bytes()]


def message():
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@example.org", "Subject zalophus"
    mail.set_content("words of the mail: ytterbium")
    for name, content in (("xenophon.txt", "inside: quokka"), ("wolverine.bin", bytes(range(256)) * 9)):
        raw = content.encode() if isinstance(content, str) else content
        mail.add_attachment(raw, maintype="application", subtype="octet-stream", filename=name)
    return io.BytesIO(mail.as_bytes())


KEEP_NOTHING = {"KB_BIN_DAYS": "0", "KB_HISTORY_DAYS": "0"}


@pytest.mark.slow
@pytest.mark.sqlite
@pytest.mark.parametrize("settings", [{}, KEEP_NOTHING], ids=["purged", "nothing kept"])
async def test_after_a_delete_or_an_update_and_a_stop_no_file_holds_the_words(start_server, tmp_path, settings):
    with start_server(tmp_path, **settings) as server:
        async with EngineClient(server.url) as client:
            for number in range(4):
                await added(client, f"{FILLER} kept{number}")
            words = ["Xylophagous", "xylophag", "Secret title", "/home/me/diagnosis", "oddtag"]
            gone = await added(
                client,
                f"Xylophagous beetles. {FILLER * 5}",
                title="Secret title",
                source_path="/home/me/diagnosis",
                tags=["oddtag"],
            )
            words += ["Quixotry", "quixotri"]
            changed = await added(client, f"Quixotry. {FILLER}")
            await client.update_note(changed, f"Other words. {FILLER}")
            words += ["zalophus", "ytterbium", "quokka", "xenophon", "wolverine", "brief.eml"]
            mail = (await finished(client, await client.add_file("brief.eml", message())))["document_id"]
            await until_idle(client)
            jobs = [job["id"] async for job in client.iter_jobs(status="done")]
            assert {word for _, word in holders(tmp_path, *words)} >= {"Secret title", "ytterbium", "quokka"}
            for document_id in (gone, mail):
                if not settings:  # to the bin first, with a version before
                    await client.change_tags(document_id, add=["Xylophagous"])
                    await client.delete_document(document_id)
                await client.delete_document(document_id, purge=not settings)
            if not settings:
                await client.delete_document(changed, purge=True)
            assert [job["id"] async for job in client.iter_jobs(status="done")] == jobs
            assert [job["document_id"] async for job in client.iter_jobs(status="done")].count(gone) == 1
        server.stop()
    assert holders(tmp_path, *words) == []
    assert ("kb.db", "kept3") in holders(tmp_path, "kept3")


async def test_a_key_of_a_deleted_note_still_stands_for_its_job(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            request = {"json": {"text": "Xylophagous", "title": "A title"}, "headers": {"Idempotency-Key": "the key"}}
            job = await finished(client, await client._call("POST", "jobs", **request))
            await client.delete_document(job["document_id"], purge=True)
            again = await client._call("POST", "jobs", **request)
            blank = await client.job(job["id"])
    assert (again["job_id"], again["status"]) == (job["id"], "done")
    assert (blank["title"], blank["content_hash"], blank["tags"]) == (None, None, [])
    assert job["content_hash"]


@pytest.mark.rare
@pytest.mark.sqlite
async def test_what_the_bin_and_history_kept_long_enough_is_gone_from_the_disk(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            changed, binned = (
                await added(client, f"Quixotry. {FILLER}"),
                await added(client, "Xylophagous", title="Ytterbium"),
            )
            await client.update_note(changed, f"Other words. {FILLER}")
            await client.delete_document(binned)
        server.stop()
    age(tmp_path / "kb.db")
    with start_server(tmp_path, KB_HISTORY_DAYS="5", KB_BIN_DAYS="5") as server:
        async with EngineClient(server.url) as client:

            async def kept():
                status = (await client.status())["history"]
                return status["versions"], status["bin"], status["size"]

            await eventually_async("nothing is kept any more", kept, lambda counts: counts == (0, 0, 0))
            assert (await client.status())["history"]["begins"]
        server.stop()
    assert holders(tmp_path, "Xylophagous", "xylophag", "Ytterbium", "Quixotry", "quixotri") == []


def age(path):
    """Let what happened have happened ten days ago."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    connection.execute("UPDATE bin SET deleted_at = datetime(deleted_at, '-10 days')")
    connection.execute("UPDATE versions SET until = datetime(until, '-10 days')")
    connection.close()
