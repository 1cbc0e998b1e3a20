"""PostgreSQL with two engines and a balancer, started by `make up-postgres`."""

from __future__ import annotations

import asyncio

import pytest
from fastmcp.exceptions import ToolError

from tests.images.conftest import output_of, running
from tests.images.test_stack import call, done
from tests.support.eventually import eventually, eventually_async

pytestmark = pytest.mark.images
ENGINES = ("engine", "engine-2")


@pytest.fixture(scope="module")
def shared(docker, tmp_path_factory):
    with running(tmp_path_factory.mktemp("postgres") / "kb", "kb-test-postgres", "up-postgres", "postgres") as stack:
        yield stack


async def found(agent, query):
    """The document that a search finds first."""
    results = (await call(agent, "kb_search", query=query))["results"]
    return results[0]["document_id"] if results else None


async def added(agent, text):
    return await done(agent, (await call(agent, "kb_addnote", text=text))["job_id"])


def until_healthy(stack, service):
    eventually(f"{service} is healthy", lambda: stack.inspected(service)["State"]["Health"]["Status"] == "healthy")


async def test_a_note_is_found_by_way_of_the_balancer_and_again_with_any_engine_stopped(shared):
    async with shared.agent() as agent:
        document = await added(agent, "The spare key hangs behind the blue boiler.")
        assert await found(agent, "where is the spare key") == document
        for stopped in ENGINES:
            stop = asyncio.to_thread(output_of, "docker", "stop", shared.container(stopped))
            stopping = asyncio.create_task(stop)
            while not stopping.done():
                assert await found(agent, "where is the spare key") == document
            await stopping
            another = await added(agent, f"A parcel came while {stopped} was away.")
            assert await found(agent, f"parcel while {stopped} was away") == another
            output_of("docker", "start", shared.container(stopped))
            until_healthy(shared, stopped)


async def test_a_worker_is_there_and_healthy(shared):
    until_healthy(shared, "worker")
    assert "worker" in output_of("docker", "exec", shared.container("worker"), "cat", "/proc/1/cmdline")


async def test_an_engine_that_is_killed_fails_no_search(shared):
    async with shared.agent() as agent:
        document = await added(agent, "The lantern stands under the stairs.")
        output_of("docker", "kill", shared.container("engine"))
        for _ in range(50):
            assert await found(agent, "where is the lantern") == document
    output_of("docker", "start", shared.container("engine"))
    until_healthy(shared, "engine")


async def test_a_server_that_is_killed_has_what_it_acknowledged_and_the_engines_go_on_by_themselves(shared):
    async def again():
        try:
            return await found(agent, "where is the ladder")
        except ToolError:
            return None  # no engine is ready yet

    async with shared.agent() as agent:
        document = await added(agent, "The ladder is in the neighbour's shed.")
        output_of("docker", "kill", shared.container("postgres"))
        output_of("docker", "start", shared.container("postgres"))
        assert await eventually_async("something is found", again) == document


async def test_what_make_brought_up_with_postgresql_it_takes_down_and_brings_up_again(shared):
    async with shared.agent() as agent:
        document = await added(agent, "The drill is on the top shelf.")
    shared.make("down")
    shared.make("up")
    async with shared.agent() as agent:
        assert await found(agent, "where is the drill") == document


async def test_another_password_holds_from_the_next_start_on(shared):
    before = shared.key("KB_POSTGRES_PASSWORD")
    kept = [line for line in shared.env_file.read_text().splitlines() if not line.startswith("KB_POSTGRES_PASSWORD")]
    shared.env_file.write_text("\n".join([*kept, ""]))
    shared.make("up-postgres")
    assert shared.key("KB_POSTGRES_PASSWORD") != before
    async with shared.agent() as agent:
        await added(agent, "The hammer lies under the bench.")


def test_the_engines_role_is_no_administrator_and_a_dump_needs_no_password(shared):
    roles = shared.inside("postgres", "psql", "-Atc", "SELECT rolname FROM pg_roles WHERE rolsuper AND rolcanlogin")
    assert roles.split() == ["postgres"]
    assert "CREATE TABLE kb.documents" in shared.inside("postgres", "pg_dump", "--schema-only", "kb")


@pytest.mark.parametrize("service", ["postgres", "balancer"])
def test_their_processes_can_do_no_more_than_they_must(shared, service):
    status = dict(line.split(":\t", 1) for line in shared.inside(service, "cat", "/proc/1/status").splitlines())
    assert set(status["Uid"].split()) == {"10001"}
    assert int(status["CapBnd"], 16) == 0
    assert shared.inspected(service)["HostConfig"]["ReadonlyRootfs"] is True
    assert list(shared.inspected(service)["NetworkSettings"]["Networks"]) == ["kb-test-postgres_inside"]
