"""Middleware of every request, with apps that misbehave."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest
from opentelemetry.trace import NoOpTracer
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from kb.asgi.request import RequestMiddleware, request_seconds
from kb.telemetry.logging import ConsoleFormatter, JsonFormatter, log_context


async def fails(_):
    raise RuntimeError("the inside")


async def fails_amid(_):
    async def half():
        yield b"half"
        raise RuntimeError("the inside")

    return StreamingResponse(half())


async def waits(request):
    request.app.state.asked.set()
    await asyncio.sleep(60)


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def app(registry):
    routes = [Route("/fails", fails), Route("/fails-amid", fails_amid), Route("/waits", waits)]
    made = Starlette(routes=routes)
    made.add_middleware(RequestMiddleware, seconds=request_seconds("seconds", registry), tracer=NoOpTracer())
    return made


def counted(registry, route, status):
    labels = {"method": "GET", "route": route, "status": str(status)}
    return registry.get_sample_value("seconds_count", labels)


async def test_what_nobody_expected_is_answered_told_once_and_counted(app, registry, caplog):
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http:
        answer = await http.get("/fails", headers={"X-Request-ID": "me"})
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (500, "me")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "inside" not in answer.text
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert counted(registry, "/fails", 500) == 1


async def test_half_an_answer_is_broken_off(app):
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http:
        with pytest.raises(RuntimeError, match="the inside"):
            await http.get("/fails-amid")


async def test_a_request_that_was_given_up_is_counted_as_such(app, registry):
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://kb") as http:
        app.state.asked = asyncio.Event()
        call = asyncio.create_task(http.get("/waits"))
        await app.state.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert counted(registry, "/waits", 499) == 1


def record(message, **extra):
    made = logging.getLogger("kb.test").makeRecord("kb.test", logging.INFO, "", 0, message, (), None, extra=extra)
    made.created = 0
    return made


def test_what_a_line_says_of_others_cannot_make_it_two():
    line = ConsoleFormatter().format(record("a\nb", name_of_file="c\r\n1970 INFO forged\x1b[31m"))
    assert line == (r"1970-01-01T00:00:00.000Z INFO    kb.test: a\x0ab name_of_file=c\x0d\x0a1970 INFO forged\x1b[31m")


def test_fields_reach_as_far_as_the_block_does():
    with log_context(request_id="1"), log_context(job_id="2"):
        inside = JsonFormatter().format(record("hello"))
    assert '"request_id": "1", "job_id": "2"' in inside
    assert "request_id" not in JsonFormatter().format(record("hello"))
