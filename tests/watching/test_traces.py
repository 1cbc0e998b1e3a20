"""Traces across gateway and engine, in a collector on this machine."""

from __future__ import annotations

import subprocess
import sys
import time

import httpx2
import pytest
from fastmcp import Client
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from kb.client.client import EngineClient
from tests.conftest import free_port, without_settings
from tests.http.conftest import added
from tests.mcp.conftest import TRIED_ERAS
from tests.support.eventually import SECONDS
from tests.watching.conftest import lines

SEARCH = ["search embed", "search full_text", "search vectors", "search fetch"]


@pytest.mark.parametrize("era", TRIED_ERAS)
async def test_a_search_by_an_agent_is_one_trace_down_to_its_steps(start_stack, collector, era):
    with start_stack(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, KB_LOG_FORMAT="json") as (engine, gateway):
        async with EngineClient(engine.url) as api:
            await added(api, "The clerk was patient.")
        async with Client(f"{gateway.url}/mcp", mode=era) as agent:
            await agent.call_tool("kb_search", {"query": "patient"})
    call_service, call = collector.find("tools/call kb_search")
    server_service, served = collector.find("POST /api/v1/search")
    _, sent = collector.find("POST")
    _, asked = next(each for each in collector.spans if each[1].span_id == call.parent_span_id)
    assert (call_service, server_service) == ("kb-gateway", "kb-engine")
    assert asked.name == "POST /mcp"
    assert not asked.parent_span_id
    assert sent.parent_span_id == call.span_id
    assert served.parent_span_id == sent.span_id
    steps = [collector.find(name)[1] for name in SEARCH]
    assert {step.parent_span_id for step in steps} == {served.span_id}
    assert {span.trace_id for span in (asked, call, sent, served, *steps)} == {call.trace_id}
    assert (sent.kind, served.kind, steps[0].kind) == (
        Span.SPAN_KIND_CLIENT,
        Span.SPAN_KIND_SERVER,
        Span.SPAN_KIND_INTERNAL,
    )
    told = [line for line in lines(engine) if line.get("trace_id") == call.trace_id.hex()]
    assert [line["route"] for line in told] == ["/api/v1/search"]


@pytest.mark.rare
async def test_a_trace_that_the_sender_began_goes_on_and_ingestion_has_its_own(start_server, tmp_path, collector):
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "archive"}
    with start_server(tmp_path, **environment) as server:
        headers = {"traceparent": f"00-{trace}-{parent}-01"}
        file = {"file": ("clerk.txt", b"The clerk was patient.")}
        accepted = httpx2.post(f"{server.url}/api/v1/jobs", params={"wait": 30}, files=file, headers=headers)
        assert accepted.status_code == 200
        httpx2.get(f"{server.url}/api/v1/documents/777")
        for quiet in ("/healthz", "/readyz", "/metrics"):
            httpx2.get(f"{server.url}{quiet}")
    assert [span.name for _, span in collector.spans if span.name.endswith(("z", "/metrics"))] == []
    service, posted = collector.find("POST /api/v1/jobs")
    assert service == "archive"
    assert (posted.trace_id.hex(), posted.parent_span_id.hex()) == (trace, parent)
    _, ingest = collector.find("ingest")
    read, embed, write = (collector.find(f"ingest {step}")[1] for step in ("read", "embed", "write"))
    assert {step.parent_span_id for step in (read, embed, write)} == {ingest.span_id}
    assert {each.key: each.value.int_value for each in read.attributes} == {"kb.job_id": 1}
    _, missing = collector.find("GET /api/v1/documents/{document_id}")
    assert {each.key: each.value.int_value for each in missing.attributes}["http.response.status_code"] == 404
    assert missing.status.code == Status.STATUS_CODE_UNSET, "a wrong id is no fault of the engine's"


@pytest.mark.rare
def test_a_collector_that_is_not_there_costs_neither_start_nor_end(start_server, tmp_path):
    with start_server(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port()}") as server:
        assert httpx2.get(f"{server.url}/api/v1/status").status_code == 200
        begun = time.monotonic()
        server.stop()
    assert server.process.returncode == 0
    assert time.monotonic() - begun < 30


LOADED = """
import os, sys
if "missing" in sys.argv:
    sys.modules["opentelemetry.sdk.trace"] = None
from kb.app import create_app
from kb_mcp.app import create_app as create_gateway
create_app(), create_gateway()
print(*(name for name in ("opentelemetry.sdk", "opentelemetry.exporter", "requests") if name in sys.modules))
"""


def loaded(*flags, **environment):
    """Which packages for traces the apps have imported, and what was said."""
    ended = subprocess.run(
        [sys.executable, "-c", LOADED, *flags],
        env=without_settings() | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return ended.stdout.split(), ended.stderr


@pytest.mark.rare
def test_without_an_address_nothing_is_imported_for_traces():
    assert loaded() == ([], "")


@pytest.mark.rare
def test_with_an_address_and_without_the_extra_it_is_said_and_the_apps_start():
    _, said = loaded("missing", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set, but traces need 'kb-local[otel]'" in said
