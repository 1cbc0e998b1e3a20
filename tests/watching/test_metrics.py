"""`/metrics`, read as Prometheus reads it."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

import httpx2
import pytest
import yaml
from fastmcp import Client
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from kb.api.errors import SettingError
from kb.asgi.subapps import choose
from kb.client.client import EngineClient
from kb.formats.installed_types import DOC_TYPES
from kb_cli.server import APPS, ServeSettings, refuse_open
from tests.conftest import ALL_APPS, KEY, MCP_KEY, ROOT
from tests.http.conftest import added, begun, finished
from tests.support.eventually import eventually_async
from tests.support.stores import TRIED

SOURCE = Path(__file__).read_bytes()
OPEN = {"Accept": "application/openmetrics-text; version=1.0.0"}


def samples(server, **headers):
    """Every sample by its name and labels."""
    answer = httpx2.get(f"{server.url}/metrics", headers=headers)
    assert answer.status_code == 200
    read = open_families if "openmetrics" in answer.headers["content-type"] else families
    found = [sample for family in read(answer.text) for sample in family.samples]
    values = {(sample.name, *sorted(sample.labels.values())): sample.value for sample in found}
    assert len(values) == len(found), "a series stands there twice"
    return values


@pytest.fixture(scope="module")
def open_server(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("metrics"), KB_APPS=ALL_APPS) as running:
        yield running


def test_both_forms_are_read_by_prometheus_own_parsers(open_server):
    plain = httpx2.get(f"{open_server.url}/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    modern = httpx2.get(f"{open_server.url}/metrics", headers=OPEN)
    assert modern.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert modern.text.endswith("# EOF\n")
    assert samples(open_server).keys() == samples(open_server, **OPEN).keys()


async def test_what_is_done_is_counted(open_server):
    before = samples(open_server)
    async with EngineClient(open_server.url) as api:
        document_id = await added(api, "Ledgers were kept by patient clerks.")
        await api.search(query="patient")
        await api.search(query="patient", fts_only=True)
        await api.document(document_id)
        assert (await finished(api, await api.add_file("test.py", BytesIO(SOURCE))))["status"] == "done"
    async with httpx2.AsyncClient(base_url=open_server.url) as http:
        broken = await http.post(
            "/api/v1/jobs", files={"file": ("broken.pdf", b"%PDF-1.7 nothing")}, params={"wait": 30}
        )
        assert broken.json()["status"] == "failed"
        await http.get("/api/v1/documents/777")
        await http.get("/never/heard/of")
    async with Client(f"{open_server.url}/mcp") as agent:
        await agent.call_tool("kb_search", {"query": "patient"})
        await agent.call_tool("kb_get", {"document_id": 777}, raise_on_error=False)
        await agent.call_tool("kb_nothing", {}, raise_on_error=False)
    # A job is counted when its transaction has ended, a moment after it can be seen.
    after = await eventually_async(
        "the failed job is counted",
        lambda: samples(open_server),
        lambda now: ("kb_ingested_total", "failed", "other") in now,
    )

    def grown(*series):
        return after[series] - before.get(series, 0)

    search = "kb_search_step_seconds_count"
    assert [grown(search, step) for step in ("embed", "full_text", "vectors", "fetch")] == [2, 3, 2, 3]
    assert grown("kb_http_request_seconds_count", "/api/v1/search", "200", "POST") == 3
    assert grown("kb_http_request_seconds_count", "/api/v1/documents/{document_id}", "200", "GET") == 1
    assert grown("kb_http_request_seconds_count", "/api/v1/documents/{document_id}", "404", "GET") == 2
    assert grown("kb_mcp_call_seconds_count", "kb_search", "ok") == 1
    assert grown("kb_mcp_call_seconds_count", "error", "kb_get") == 1
    assert grown("kb_mcp_call_seconds_count", "(other)", "error") == 1
    assert grown("kb_ingested_total", "done", "note") == 1
    assert grown("kb_ingested_total", "code", "done") == 1
    assert grown("kb_ingested_total", "failed", "other") == 1
    assert grown("kb_ingest_step_seconds_count", "write") in (1, 2)  # again if the note's vectors came late
    assert grown("kb_embedding_batch_texts_sum") >= 4
    assert grown("kb_embedding_batch_seconds_count") > 0
    assert grown("kb_documents", "note") == grown("kb_documents", "code") == 1
    assert grown("kb_jobs", "failed") == 1
    assert grown("kb_jobs", "done") == 2
    assert grown("kb_chunks") >= 2
    size = {"sqlite": 384 * 4, "postgres": 0}[TRIED[-1]]
    replaced = size  # of the note, if its vectors came late
    assert grown("kb_vector_index_bytes") - grown("kb_chunks") * size in (0, replaced)
    assert after["kb_database_bytes",] > 100_000
    assert after["kb_worker_errors_total",] == 0


@pytest.mark.slow
async def test_the_queue_shows_how_much_waits_and_for_how_long(open_server):
    async with EngineClient(open_server.url) as api:
        long = await api.add_note(text="Ledgers were kept by patient clerks. " * 6000)
        await begun(api, long)
        waiting = await api.add_file("waits.py", BytesIO(SOURCE + b"# and waits"))
        first = samples(open_server)
        assert first["kb_jobs", "queued"] == first["kb_jobs", "running"] == 1
        assert 0 <= first["kb_queue_age_seconds",] < 60
        await eventually_async(
            "what waits has waited longer",
            lambda: samples(open_server)["kb_queue_age_seconds",],
            lambda age: age > first["kb_queue_age_seconds",],
        )
        await finished(api, waiting)
    idle = samples(open_server)
    assert idle["kb_queue_age_seconds",] == idle["kb_jobs", "queued"] == 0


async def test_labels_are_from_short_lists_whatever_is_asked(open_server):
    before = samples(open_server).keys()
    async with httpx2.AsyncClient(base_url=open_server.url) as http:
        for number in range(20):
            await http.get(f"/api/v1/documents/{number + 1000}")
            await http.get(f"/api/v1/nothing{number}")
            await http.get(f"/docs/static/nothing{number}")
            await http.request(f"METHOD{number}", "/api/v1/status")
    async with Client(f"{open_server.url}/mcp") as agent:
        for number in range(20):
            await agent.call_tool(f"tool_{number}", {}, raise_on_error=False)
    new = {series for series in samples(open_server).keys() - before if series[0].endswith("_count")}
    assert len(new) <= 8, new
    assert {series[1] for series in samples(open_server) if series[0] == "kb_documents"} <= DOC_TYPES


def test_the_documentation_names_every_metric_and_no_other(open_server):
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(kb_\w+)`", page, re.MULTILINE))
    answer = httpx2.get(f"{open_server.url}/metrics")
    served = {family.name + ("_total" * (family.type == "counter")) for family in families(answer.text)}
    assert documented == {name for name in served if name.startswith("kb_")}


def test_the_alerts_ask_for_what_is_served(open_server):
    groups = yaml.safe_load((ROOT / "compose" / "alerts.yaml").read_text())["groups"]
    asked = {name for group in groups for rule in group["rules"] for name in re.findall(r"\bkb_\w+", rule["expr"])}
    known = families(httpx2.get(f"{open_server.url}/metrics").text)
    assert asked
    assert asked <= {name for family in known for name in sample_names(family)} | {f.name for f in known}


def test_the_dashboard_asks_for_what_is_served(open_server):
    dashboard = json.loads((ROOT / "compose" / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    names = {name for query in asked for name in re.findall(r"\b(?:kb|process)_\w+", query)}
    known = families(httpx2.get(f"{open_server.url}/metrics").text)
    assert names <= {name for family in known for name in sample_names(family)}
    assert all(panel["description"] and panel["targets"] for panel in dashboard["panels"])


def sample_names(family):
    """What a query calls the samples of a metric."""
    endings = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum"), "counter": ("_total",)}
    return {family.name + ending for ending in endings.get(family.type, ("",))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "opens"),
    [
        ({"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY}, KEY),
        ({"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_METRICS_API_KEY": "only-numbers"}, "only-numbers"),
    ],
)
def test_with_a_key_only_its_holder_reads_and_one_of_its_own_reads_nothing_else(start_server, tmp_path, keys, opens):
    with start_server(tmp_path, **keys, KB_APPS=ALL_APPS) as server:
        for wrong in ({}, {"Authorization": f"Bearer {MCP_KEY}"}):
            refused = httpx2.get(f"{server.url}/metrics", headers=wrong)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")
        assert samples(server, Authorization=f"Bearer {opens}")
        if opens != KEY:
            bearer = {"Authorization": f"Bearer {opens}"}
            assert httpx2.get(f"{server.url}/api/v1/documents", headers=bearer).status_code == 401
            assert httpx2.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {KEY}"}).status_code == 401


def test_without_a_key_it_is_not_for_pages_of_other_sites(open_server):
    assert httpx2.get(f"{open_server.url}/metrics", headers={"Host": "evil.example"}).status_code == 421
    assert httpx2.get(f"{open_server.url}/metrics", headers={"Origin": "http://evil.example"}).status_code == 403


@pytest.mark.requirement("R-5")
def test_it_is_not_served_beyond_this_machine_without_a_key():
    everywhere, chosen = ServeSettings(host="0.0.0.0"), choose(APPS, ["metrics"])
    with pytest.raises(SettingError, match="KB_METRICS_API_KEY"):
        refuse_open(everywhere, chosen, {})
    refuse_open(everywhere, chosen, {"KB_API_KEY": "x"})
    refuse_open(everywhere, chosen, {"KB_METRICS_API_KEY": "x"})


@pytest.mark.rare
@pytest.mark.requirement("S-3")
def test_a_gateway_alone_shows_its_own(start_server, tmp_path):
    with start_server(tmp_path, KB_APPS="mcp,metrics") as server:
        assert samples(server)["kb_mcp_http_request_seconds_count", "/readyz", "200", "GET"] >= 1
    with start_server(tmp_path, KB_APPS="mcp") as server:
        assert httpx2.get(f"{server.url}/metrics").status_code == 404
