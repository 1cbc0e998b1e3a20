"""The engine stops within five seconds in any state, and repeats its unfinished work after the next start."""

from __future__ import annotations

import asyncio
import io
import random
import signal
import subprocess
import sys
import time

import httpx2
import pytest

from kb.api.errors import EngineUnreachable, KbError, Unavailable
from kb.client.client import EngineClient
from tests.conftest import ALL_APPS, without_settings
from tests.http.conftest import begun, finished
from tests.support.eventually import SECONDS, eventually_async
from tests.support.hostile import parser_at_work, processor_seconds, slow
from tests.support.rare_cases import mostly_rare
from tests.support.stores import Database

LONGEST_STOP = 5
WORD = random.Random(1).randbytes(8 << 20).translate(bytes(97 + byte % 26 for byte in range(256)))
LEDGERS = "Ledgers were kept by patient clerks. " * 9000


def seconds_to_stop(server):
    begun_at = time.monotonic()
    server.process.terminate()
    server.process.wait(timeout=SECONDS)
    return time.monotonic() - begun_at


def jobs(data_dir):
    return Database(data_dir).execute("SELECT status, attempts FROM jobs")


async def computing(server):
    """Wait until the engine itself, not its parser, has computed for some time from now on."""
    before = processor_seconds(server.process.pid)
    await eventually_async(
        "it computes", lambda: processor_seconds(server.process.pid) - before, lambda seconds: seconds > 0.5
    )


async def cuts_a_word(client, server):
    await begun(client, await client.add_file("word.txt", io.BytesIO(WORD)))
    await computing(server)  # it takes a minute to cut


async def cuts_a_note(client, server):
    await begun(client, await client.add_note(text=WORD[: 1 << 19].decode()))


async def embeds(client, server):
    accepted = await client.add_note(text=LEDGERS)
    await eventually_async(
        "some of it is embedded", lambda: client.job(accepted["job_id"]), lambda job: job["progress"] > 0
    )


async def parses(client, server):
    await client.add_file("slow.xlsx", io.BytesIO(slow()))
    await asyncio.to_thread(parser_at_work, server.process.pid)


@pytest.mark.slow
@pytest.mark.parametrize(
    "occupy", mostly_rare([cuts_a_word, cuts_a_note, embeds, parses], 2), ids=lambda act: act.__name__
)
async def test_a_job_is_stopped_amid_its_work_and_has_not_failed(start_server, tmp_path, occupy):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            await occupy(client, server)
        assert seconds_to_stop(server) < LONGEST_STOP
    assert server.process.returncode == 0
    assert "Traceback" not in server.log.read_text()
    with start_server(tmp_path):
        [(status, attempts)] = jobs(tmp_path)
    # On a machine this busy the stop may have been cut off: that is no attempt either.
    assert status != "failed"
    assert attempts <= 1


@pytest.mark.slow
async def test_a_note_that_is_changed_is_as_it_was_when_the_engine_stops_meanwhile(start_server, tmp_path):
    with start_server(tmp_path) as server:
        async with EngineClient(server.url) as client:
            note = (await finished(client, await client.add_note(text="The lighthouse stands.")))["document_id"]
            change = asyncio.create_task(client.update_note(note, text=WORD[:1_000_000].decode()))
            await computing(server)
            assert await asyncio.to_thread(seconds_to_stop, server) < LONGEST_STOP
            with pytest.raises((Unavailable, EngineUnreachable)):
                await change
    assert server.process.returncode == 0
    with start_server(tmp_path) as server:
        text = httpx2.get(f"{server.url}/api/v1/documents/{note}").json()["chunks"][0]["text"]
        assert text == "The lighthouse stands."


@pytest.mark.slow
async def test_requests_that_do_not_end_are_cut_off(start_server, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(STUCK)
    with start_server(tmp_path / "data", PYTHONPATH=str(tmp_path)) as server:
        async with EngineClient(server.url) as client:
            await finished(client, await client.add_note(text="The lighthouse stands."))
            search = asyncio.create_task(client.search(query="lighthouse"))
            await eventually_async("it searches", server.log.read_text, lambda log: "searching" in log)
            assert await asyncio.to_thread(seconds_to_stop, server) < LONGEST_STOP
            with pytest.raises(KbError):
                await search
    assert "did not stop within" in server.log.read_text()
    with start_server(tmp_path / "data") as server:
        assert "lighthouse" in httpx2.get(f"{server.url}/api/v1/documents/1").text


STUCK = """
import time, sys
import kb.search.retrieve as retrieve

def rankings(*_):
    print("searching", file=sys.stderr, flush=True)
    time.sleep(600)

retrieve.Retriever.rankings = rankings
"""

STARTS_SLOWLY = """
import sys, time
import kb.app

def start(*_):
    print("starting", flush=True)
    time.sleep(600)

kb.app.start = start
sys.argv = ["kb", "serve", "--port", "0", "--data-dir", sys.argv[1]]
from kb_cli.__main__ import start as run
run()
"""


@pytest.mark.slow
def test_a_terminal_that_is_closed_stops_it_cleanly(start_server, tmp_path):
    with start_server(tmp_path) as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(SECONDS) == 0
    assert "Finished server process" in server.log.read_text()


@pytest.mark.rare
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_takes_long_is_cut_off(tmp_path, number):
    command = [sys.executable, "-c", STARTS_SLOWLY, str(tmp_path)]
    with subprocess.Popen(command, env=without_settings(), stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout.readline() == "starting\n"
        begun_at = time.monotonic()
        starting.send_signal(number)
        assert starting.wait(SECONDS) == 130
        assert time.monotonic() - begun_at < LONGEST_STOP


@pytest.mark.slow
@pytest.mark.parametrize("pause", mostly_rare([0, 0.3, 1], 2))
def test_a_stop_right_after_the_start_is_clean_although_apps_are_still_imported(start_server, tmp_path, pause):
    with start_server(tmp_path, KB_APPS=ALL_APPS) as server:
        time.sleep(pause)
        assert seconds_to_stop(server) < LONGEST_STOP
    assert server.process.returncode == 0
    assert "was ended" not in server.log.read_text()
    assert "lost" not in server.log.read_text()
