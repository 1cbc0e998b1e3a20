"""The stack, brought up by `make up` and used as agents and operators use it."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
import time
from functools import partial

import httpx2
import pytest
from fastmcp.exceptions import ToolError

from kb.embed.models.install import install, pack
from tests.conftest import free_port
from tests.images.conftest import PROJECT, VERSION, output_of
from tests.support.eventually import eventually, eventually_async
from tests.support.pdf import pdf
from tests.support.scans import bound, scan
from tests.support.small_models import write_small_model

pytestmark = pytest.mark.images
RESTORE = ("restore", "-o", "/data/kb.db", "file:///replica")
SERVICES = ["engine", "gateway"]
MOST = {"kb-engine": 460, "kb-mcp": 200}
"""Megabytes of an image."""

LONG = b"Many words about ledgers keep the engine busy for a long while. " * 65_536
"""It takes several times as long as Docker, which looks every ten seconds, takes to find a new engine healthy."""

FIND = """
import importlib.util, shutil, sys
print(*(name for name in sys.argv[1].split(",") if importlib.util.find_spec(name)))
print(*(name for name in sys.argv[2].split(",") if shutil.which(name)))
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


async def call(agent, tool, **arguments):
    return (await agent.call_tool(tool, arguments)).structured_content


async def done(agent, job_id):
    """The id of the document that a job became."""

    async def job():
        return (await call(agent, "kb_jobs", job_id=job_id))["jobs"][0]

    ended = await eventually_async("the job has ended", job, lambda job: job["status"] in ("done", "failed"))
    assert ended["status"] == "done", ended
    return ended["document_id"]


@pytest.mark.requirement("G-3")
@pytest.mark.requirement("R-4")
async def test_an_agent_adds_a_note_and_finds_it_also_after_the_stack_went_down_and_up(stack):
    async with stack.agent() as agent:
        job = await call(agent, "kb_addnote", text="The spare key hangs behind the blue boiler.", tags=["home"])
        document = await done(agent, job["job_id"])
    stack.make("down")
    stack.make("up")
    async with stack.agent() as agent:
        found = await call(agent, "kb_search", query="where is the spare key")
    assert found["results"][0]["document_id"] == document


async def upload(agent, filename, content):
    """The id of a new file's job."""
    started = await call(agent, "kb_upload_start", filename=filename, total_size=len(content))
    for index, begin in enumerate(range(0, len(content), 1 << 20)):
        data = base64.b64encode(content[begin : begin + (1 << 20)]).decode()
        await call(agent, "kb_upload_chunk", upload_id=started["upload_id"], data=data, chunk_index=index)
    return (await call(agent, "kb_upload_finish", upload_id=started["upload_id"]))["job_id"]


async def uploaded(agent, filename, content):
    """The id of a new file's document."""
    return await done(agent, await upload(agent, filename, content))


async def test_a_file_is_parsed_in_the_locked_container(stack):
    content = pdf("Quarterly report of the lighthouse", "The lamp was replaced in March")
    async with stack.agent() as agent:
        document = await uploaded(agent, "lamp.pdf", content)
        found = await call(agent, "kb_search", query="when was the lamp replaced")
    assert found["results"][0]["document_id"] == document
    assert "lamp was replaced in March" in found["results"][0]["text"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_can_do_no_more_than_it_must(stack, service):
    host = stack.inspected(service)["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Privileged"] is False
    status = dict(line.split(":\t", 1) for line in stack.inside(service, "cat", "/proc/1/status").splitlines())
    assert set(status["Uid"].split()) == {"10001"}
    assert set(status["Gid"].split()) == {"10001"}
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    for place in ("/", "/opt/kb", "/etc"):
        refused = subprocess.run(["docker", "exec", stack.container(service), "touch", f"{place}/x"], check=False)
        assert refused.returncode != 0


@pytest.mark.requirement("S-2")
@pytest.mark.parametrize(
    ("service", "present", "absent"),
    [
        ("engine", "apsw,sqlite_vec,onnxruntime,opentelemetry.sdk,psycopg", "fastmcp,mcp"),
        ("gateway", "fastmcp,mcp", "apsw,sqlite_vec,onnxruntime,tokenizers,numpy,fastapi,psycopg"),
    ],
)
def test_an_image_holds_what_it_needs_and_no_tools(stack, service, present, absent):
    never = "pip,setuptools,ensurepip,uv,hatchling,torch,transformers,sentence_transformers,onnx,huggingface_hub,pytest"
    tools = "pip,pip3,uv,gcc,cc,make,git,curl,wget,strip"
    modules, programs = stack.inside(service, "python", "-c", FIND, f"{present},{absent},{never}", tools).splitlines()
    assert modules.split() == present.split(",")
    assert programs == ""


def test_the_model_is_in_the_engines_image_alone(stack):
    find = ["find", "/opt", "-name", "*.onnx*", "-size", "+1M"]
    in_engine = sorted(stack.inside("engine", *find).split())
    assert in_engine == ["/opt/model/int8/model.onnx.data", "/opt/model/model.onnx.data"]
    assert stack.inside("gateway", *find).split() == []


@pytest.mark.parametrize("image", MOST)
def test_an_image_is_small_and_says_what_it_is(stack, image):
    [inspected] = json.loads(output_of("docker", "image", "inspect", f"{image}:{VERSION}"))
    labels = inspected["Config"]["Labels"]
    assert inspected["Size"] / 1e6 <= MOST[image]
    assert inspected["Config"]["User"] == "10001:10001"
    assert inspected["Config"]["Healthcheck"]["Test"] == ["CMD", "kb", "healthcheck"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.title"]


async def test_the_keys_are_needed_and_not_told(stack):
    keys = [stack.key("KB_API_KEY"), stack.key("KB_MCP_API_KEY")]
    async with httpx2.AsyncClient() as http:
        refused = await http.post(stack.mcp_url, json={"jsonrpc": "2.0", "id": 1, "method": "server/discover"})
    assert refused.status_code == 401
    said = stack.compose("logs") + (stack.folder / "up.log").read_text()
    assert not any(key in said for key in keys)
    assert "KB_MCP_API_KEY" not in stack.inside("engine", "env")


def reaches(network, address, port):
    """Whether a container in `network` gets a connection."""
    command = ["docker", "run", "--rm", "--network", network, "--entrypoint", "python", f"kb-mcp:{VERSION}", "-c"]
    return subprocess.run([*command, CONNECT, address, str(port)], capture_output=True, check=False).returncode == 0


def test_the_engine_is_reachable_from_the_gateways_network_alone(stack):
    networks = stack.inspected("engine")["NetworkSettings"]
    assert not any(networks["Ports"].values())
    [network] = networks["Networks"].values()
    assert reaches(f"{PROJECT}_inside", network["IPAddress"], 8000)
    assert not reaches(f"{PROJECT}_outside", network["IPAddress"], 8000)
    assert not reaches("bridge", network["IPAddress"], 8000)


@pytest.mark.requirement("S-6")
def test_no_network_has_a_way_out_and_the_engine_is_on_the_inner_one_alone(stack):
    [network] = stack.inspected("engine")["NetworkSettings"]["Networks"]
    assert network == f"{PROJECT}_inside"
    inside, outside = json.loads(output_of("docker", "network", "inspect", network, f"{PROJECT}_outside"))
    assert inside["Internal"] is True
    assert outside["Options"]["com.docker.network.bridge.enable_ip_masquerade"] == "false"


@pytest.mark.parametrize("service", SERVICES)
def test_a_stop_is_quick_and_clean_also_while_it_starts(stack, service):
    name = stack.container(service)
    for seconds in (0.5, 1.0, 5.0):
        output_of("docker", "restart", "--time", "20", name)
        time.sleep(seconds)
        begun = time.monotonic()
        output_of("docker", "stop", "--time", "20", name)
        assert time.monotonic() - begun < 10
        assert stack.inspected(service)["State"]["ExitCode"] in (0, 130)
    stack.make("up")


def test_a_second_engine_on_the_same_volume_is_refused_and_the_first_serves_on(stack):
    command = ["docker", "compose", "-f", "compose/compose.yaml", "run", "--rm", "--no-deps", "engine"]
    second = subprocess.run(
        command, cwd=stack.folder, env=stack.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert second.returncode == 8
    said = second.stderr.splitlines()[-1]
    assert said.startswith("kb: Another kb engine is using /data (kb.lock). It is running at http://127.0.0.1:8000")
    assert said.endswith(". Stop it first.")
    assert stack.inside("engine", "kb", "healthcheck") == "ready\n"


async def test_an_engine_that_is_stopped_is_told_as_unreachable_soon_and_found_again(stack):
    async with stack.agent() as agent:
        stack.compose("stop", "engine")
        with pytest.raises(ToolError, match="unreachable"):
            await call(agent, "kb_search", query="spare key")
        assert "timeout:1 attempts:1" in stack.inside("gateway", "cat", "/etc/resolv.conf"), "otherwise it takes 10 s"
        stack.make("up")
        assert "results" in await call(agent, "kb_search", query="spare key")


def test_a_stack_that_does_not_start_says_why(stack):
    wrong = stack.environment | {"KB_LOG_LEVEL": "loud"}
    failed = subprocess.run(
        ["make", "-s", "up"], cwd=stack.folder, env=wrong, capture_output=True, text=True, timeout=200, check=False
    )
    assert failed.returncode != 0
    assert "kb: KB_LOG_LEVEL: Input should be 'debug', 'info', 'warning' or 'error'" in failed.stdout
    stack.make("up")


class Writer(threading.Thread):
    """An agent that adds notes until it is told to stop, and sends a note again that was not acknowledged."""

    def __init__(self, stack, number):
        super().__init__()
        self.stack, self.number = stack, number
        self.enough = threading.Event()
        self.acknowledged = {}
        self.retried = []
        self.is_whole = False

    def run(self):
        asyncio.run(self._write())
        self.is_whole = True

    async def _write(self):
        async with self.stack.agent() as agent:
            while not self.enough.is_set():
                text = f"Writer {self.number} saw ship number {len(self.acknowledged)} pass the harbour."
                try:
                    job = await call(agent, "kb_addnote", text=text)
                except ToolError as error:
                    self.retried.append(str(error))
                    await asyncio.sleep(0.2)
                else:
                    self.acknowledged[text] = job["job_id"]


async def every_writer_has_more(writers, before):
    """How many notes of each are acknowledged, once those are more than before."""
    return await eventually_async(
        "every writer has a note acknowledged",
        lambda: [len(writer.acknowledged) for writer in writers],
        lambda now: all(count > earlier for count, earlier in zip(now, before, strict=True)),
    )


async def test_an_upgrade_under_load_loses_nothing_that_was_acknowledged(stack):
    writers = [Writer(stack, number) for number in range(4)]
    for writer in writers:
        writer.start()
    before = await every_writer_has_more(writers, [0] * len(writers))
    stack.environment["KB_VERSION"] = f"{VERSION}-next"
    upgrade = ["up", "--build", "--detach", "--wait", "--no-deps", "engine"]
    await asyncio.to_thread(stack.compose, *upgrade)
    await every_writer_has_more(writers, before)
    for writer in writers:
        writer.enough.set()
        writer.join()
        assert writer.is_whole
    assert stack.inspected("engine")["Config"]["Image"] == f"kb-engine:{VERSION}-next"
    assert {reason for writer in writers for reason in writer.retried if "unreachable" not in reason} == set()
    async with stack.agent() as agent:
        for writer in writers:
            for text, job in writer.acknowledged.items():
                document = await call(agent, "kb_get", document_id=await done(agent, job))
                assert document["chunks"][0]["text"] == text
    print(f"{sum(map(len, (writer.acknowledged for writer in writers)))} notes acknowledged,")
    print(f"{sum(len(writer.retried) for writer in writers)} attempts repeated")


async def test_a_job_that_ends_the_engine_ends_itself_in_a_container_of_a_gibibyte(stack):
    up = ["up", "--detach", "--wait", "--no-deps", "engine"]
    stack.environment["KB_ENGINE_MEMORY"] = "1g"
    stack.compose(*up)
    assert stack.inspected("engine")["HostConfig"]["Memory"] == 1 << 30
    async with stack.agent() as agent:
        deadly = await upload(agent, "ledgers.txt", LONG)
        notes = (call(agent, "kb_addnote", text=f"Parcel {number} waits.") for number in range(100))
        behind = [accepted["job_id"] for accepted in await asyncio.gather(*notes)]

    async def job():
        async with stack.agent() as agent:
            return (await call(agent, "kb_jobs", job_id=deadly))["jobs"][0]

    for _ in range(3):
        await eventually_async("the job runs", job, lambda job: job["status"] == "running")
        output_of("docker", "kill", stack.container("engine"))
        stack.compose(*up)
    ended = await eventually_async("the job has ended", job, lambda job: job["status"] in ("done", "failed"))
    assert ended["error"] == "The engine ended 3 times during this job."
    async with stack.agent() as agent:
        assert len({await done(agent, job_id) for job_id in behind}) == len(behind)
    del stack.environment["KB_ENGINE_MEMORY"]
    stack.compose(*up)


async def test_an_upgrade_makes_a_backup_first_and_the_earlier_image_can_come_back(stack):
    def backups():
        return int(stack.inside("engine", "python", "-c", "import os; print(len(os.listdir('/backups')))"))

    async with stack.agent() as agent:
        kept = await done(agent, (await call(agent, "kb_addnote", text="Written before the upgrade."))["job_id"])
    earlier, before = stack.environment["KB_VERSION"], backups()
    stack.make("up")
    assert backups() == before
    for version in (f"{earlier}-later", earlier):
        stack.environment["KB_VERSION"] = version
        stack.make("up")
        assert stack.inspected("engine")["Config"]["Image"] == f"kb-engine:{version}"
        async with stack.agent() as agent:
            assert (await call(agent, "kb_get", document_id=kept))["id"] == kept
    assert backups() > before


async def test_a_backup_made_while_it_runs_can_be_restored(stack):
    async with stack.agent() as agent:
        kept = await done(agent, (await call(agent, "kb_addnote", text="Kept by the backup."))["job_id"])
        stack.inside("engine", "kb", "backup", "/data/backups")
        stack.inside("engine", "kb", "backup", "verify", "/data/backups")
        lost = await done(agent, (await call(agent, "kb_addnote", text="Written after the backup."))["job_id"])
    stack.compose("stop", "engine")
    stack.compose("run", "--rm", "--no-deps", "engine", "backup", "restore", "/data/backups")
    stack.make("up")
    async with stack.agent() as agent:
        assert (await call(agent, "kb_get", document_id=kept))["id"] == kept
        with pytest.raises(ToolError, match=str(lost)):
            await call(agent, "kb_get", document_id=lost)


def test_the_engines_port_is_published_on_this_machine_if_asked(stack):
    stack.environment["KB_ENGINE_PORT"] = str(free_port())
    stack.make("up")
    url = f"http://127.0.0.1:{stack.environment['KB_ENGINE_PORT']}"
    answer = httpx2.get(f"{url}/api/v1/status", headers={"Authorization": f"Bearer {stack.key('KB_API_KEY')}"})
    assert answer.json()["device"] == "cpu"
    assert httpx2.get(f"{url}/api/v1/status").status_code == 401


async def test_a_lost_database_comes_back_from_its_replica(stack):
    stack.environment["KB_REPLICA_URL"] = "file:///replica"
    stack.make("up")
    async with stack.agent() as agent:
        kept = await done(agent, (await call(agent, "kb_addnote", text="Kept by the replica."))["job_id"])
    snapshots = ("docker", "exec", stack.container("litestream"), "litestream", "snapshots", "file:///replica")
    eventually("there is a replica", lambda: "\nfile" in output_of(*snapshots))
    output_of("docker", "kill", stack.container("engine"))
    output_of("docker", "stop", stack.container("litestream"))
    lose = "import pathlib; [file.unlink() for file in pathlib.Path('/data').glob('kb.db*')]"
    stack.compose("run", "--rm", "--no-deps", "--entrypoint", "python", "engine", "-c", lose)
    stack.compose("-f", "compose/litestream.yaml", "run", "--rm", "--no-deps", "litestream", *RESTORE)
    stack.make("up")
    async with stack.agent() as agent:
        assert (await call(agent, "kb_get", document_id=kept))["id"] == kept
    stack.inside("engine", "kb", "doctor")


async def test_an_image_with_ocr_reads_scans_in_the_locked_container_and_those_it_had_before(stack):
    content = bound(pdf("Letter with an enclosure"), scan("The dredger leaves the harbour on Thursday"))
    async with stack.agent() as agent:
        before = await uploaded(agent, "enclosure.pdf", content)
    stack.environment |= {"KB_OCR": "1", "KB_VERSION": f"{VERSION}-ocr"}
    stack.compose("up", "--build", "--detach", "--wait", "--no-deps", "engine")
    async with stack.agent() as agent:
        document = await uploaded(agent, "scan.pdf", scan("Anchors are inspected by the diver each spring"))
        found = await call(agent, "kb_search", query="who inspects anchors")
        assert found["results"][0]["document_id"] == document
        assert "Anchors are inspected" in found["results"][0]["text"]
        search = partial(call, agent, "kb_search", query="dredger leaves the harbour")
        found = await eventually_async("it is read again", search, lambda found: "dredger" in str(found["results"][:1]))
        assert found["results"][0]["document_id"] == before
    [inspected] = json.loads(output_of("docker", "image", "inspect", f"kb-engine:{VERSION}-ocr"))
    print(f"the image with OCR has {inspected['Size'] / 1e6:.0f} MB")
    del stack.environment["KB_OCR"]


def test_an_image_with_a_packed_model_uses_it_without_a_network(stack, tmp_path):
    packed = stack.folder / "containers" / "model" / "mine.kbmodel"
    pack(install(str(write_small_model(tmp_path / "small")), tmp_path / "data"), packed)
    stack.environment |= {"KB_MODEL": packed.name, "KB_VERSION": f"{VERSION}-model"}
    stack.compose("build", "engine")
    run = ("docker", "run", "--detach", "--rm", "--network", "none", "--env", "KB_API_KEY=key")
    container = output_of(*run, f"kb-engine:{VERSION}-model").strip()
    try:
        healthy = partial(subprocess.run, ["docker", "exec", container, "kb", "healthcheck"], check=False)
        eventually("it is healthy", healthy, lambda done: done.returncode == 0)
        output_of("docker", "exec", container, "kb", "addnote", "The key is under the mat.", "--wait")
        assert "under the mat" in output_of(
            "docker", "exec", container, "kb", "search", "where is the key", "--vec-only"
        )
        listed = json.loads(output_of("docker", "exec", container, "kb", "model", "list", "--json"))
    finally:
        output_of("docker", "stop", container)
    assert [each["name"] for each in listed["models"] if each["is_in_use"]] == ["small"]
    packed.unlink()
    del stack.environment["KB_MODEL"]
