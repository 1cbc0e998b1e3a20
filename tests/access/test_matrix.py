"""Rights of callers for every route, tool and mount. A new one must declare its right."""

from __future__ import annotations

import json
from itertools import chain

import httpx2
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError
from starlette.routing import Mount, Route

from kb.api.rights import RIGHTS
from kb.app import create_app
from kb.asgi.subapps import AppContext, installed
from kb.routes.dependencies import RequiredRight
from kb.routes.thread_route import ThreadRoute
from kb_cli.server import APPS
from kb_mcp.app import create_app as create_gateway
from tests.access.conftest import SURFACES
from tests.conftest import KEY, MCP_KEY

OPEN = {"/docs", "/docs/static", "/openapi.json", "/healthz", "/readyz"}
"""What strangers may see of any app: the description of the API, and that it is up."""

SIGN_IN = {"/.well-known", "/authorize", "/token", "/register", "/revoke"}
"""Where programs sign in, which tests/oauth attacks."""

SIGNED = {"/upload", "/chatgpt/documents/{id}/{signature}"}
"""Addresses that are keys themselves."""

NEEDED = {
    "GET": "read",
    "POST search": "read",
    "POST links": "read",
    "POST": "write",
    "PATCH": "write",
    "PUT": "write",
    "DELETE": "write",
    **dict.fromkeys(
        (
            "GET keys",
            "POST keys",
            "POST key/identify",
            "POST keys/{name}/rotate",
            "DELETE keys/{name}",
            "GET audit",
            "GET grants",
            "POST grants",
            "POST grant/find",
            "POST grant/exchange",
            "DELETE grants/{grant_id}",
            "GET models",
            "GET reembed",
            "POST reembed",
            "GET maintenance",
            "POST maintenance",
            "POST notes-folder",
            "POST first-key",
            "GET settings",
            "PATCH settings",
        ),
        "admin",
    ),
}
"""The right that a route needs, by its method, or by its method and path where that is not the rule."""

TOOLS = {
    "read": {"kb_search", "kb_list", "kb_get", "kb_history", "kb_status", "kb_jobs", "search", "fetch"},
    "write": {
        "kb_addnote",
        "kb_upload_start",
        "kb_upload_chunk",
        "kb_upload_finish",
        "kb_update_note",
        "kb_delete",
        "kb_undo",
        "kb_set_collection",
    },
}
NO_KEYS = {"no key": None, "half a word": "kb", "a wrong key": "wrong", "a wrong key of our form": "kb_wrong"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return {
        "KB_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "KB_API_KEY": KEY,
        "KB_MCP_API_KEY": MCP_KEY,
        "KB_MCP_CHATGPT": "1",
        "KB_MCP_COLLECTIONS": "1",
    }


def walk(routes, prefix=""):
    """Every route with its path, those of mounts, too."""
    for route in routes:
        path = prefix + getattr(route, "path", "")
        if router := getattr(route, "original_router", None):  # FastAPI includes routers as they are
            yield from walk(router.routes, prefix + route.include_context.prefix)
        elif isinstance(route, Mount) and route.routes:
            yield from walk(route.routes, path)
        else:
            yield path, route


def operations(environment):
    """Method, path and route of each call of the HTTP API."""
    app, found = create_app(AppContext(environment)), []
    for path, route in walk(app.routes):
        if path.startswith("/api/"):
            assert isinstance(route, ThreadRoute), f"{path} is not a route that checks rights"
            found += [(method, path.removeprefix("/api/v1/"), route) for method in sorted(route.methods)]
    assert len(found) >= sum(map(len, app.openapi()["paths"].values())) > 0
    return found


def right_of(route):
    """The right that a route says it needs."""
    [right] = {each.dependency.right for each in route.dependencies if isinstance(each.dependency, RequiredRight)}
    return right


def send(url, method, path, token):
    """The answer to a call about things that are not there."""
    path = path.format(
        document_id=10**9, other_id=10**9, job_id=10**9, number=1, name="nobody", watch_id="0" * 32, grant_id="0" * 16
    )
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.request(method, f"{url}{path}", headers=headers, json={} if method != "GET" else None)


def test_every_route_says_the_right_that_its_kind_needs(environment):
    for method, path, route in operations(environment):
        assert right_of(route) == NEEDED.get(f"{method} {path}", NEEDED.get(method)), f"{method} {path}"


def test_every_route_is_shut_without_a_key_and_to_keys_with_less_than_its_right(
    guarded, environment, reader, writer, tagged, foldered
):
    keys = {"read": reader, "write": writer, "write, a tag": tagged, "write, a folder": foldered}
    for method, path, route in operations(environment):
        url = f"{guarded.url}/api/v1/"
        for who, token in (NO_KEYS | {"an agent's key": MCP_KEY}).items():
            assert send(url, method, path, token).status_code == 401, f"{method} {path}: {who}"
        for who, key in keys.items():
            may = RIGHTS.index(right_of(route)) <= RIGHTS.index(who.partition(",")[0])
            status = send(url, method, path, key.token).status_code
            assert (status == 403) is not may, f"{method} {path}: {who}: {status}"
            assert status != 401, f"{method} {path}: {who}"
        assert send(url, method, path, KEY).status_code not in (401, 403), f"{method} {path}"


def test_a_route_that_names_no_right_cannot_be_made():
    with pytest.raises(TypeError, match="does not declare the right"):
        ThreadRoute("/new", lambda: None)


def test_every_path_of_every_app_asks_for_a_key_or_is_known_to_be_open(guarded, environment, reader):
    paths = set(chain.from_iterable(app.paths for app in APPS.values()))
    for path, _ in walk(create_app(AppContext(environment)).routes):
        assert path.startswith("/api/v1/") or path in OPEN, path
    for path in sorted(paths - OPEN - SIGN_IN - SIGNED - {"/api", "/chatgpt"}):
        for who, token in NO_KEYS.items():
            assert send(guarded.url, "GET", path, token).status_code == 401, f"GET {path}: {who}"
            assert send(guarded.url, "POST", path, token).status_code in (401, 405), f"POST {path}: {who}"
    assert send(guarded.url, "GET", "/metrics", reader.token).status_code == 401
    assert send(guarded.url, "GET", "/metrics", KEY).status_code == 200
    assert set(installed(APPS)) == set(APPS), "another package adds an app: give it a row of its own here"
    assert all(app.keys for app in APPS.values())


def test_every_route_and_mount_of_the_gateway_asks_for_a_key_or_is_an_address(guarded, environment):
    known = set(SURFACES) | OPEN | SIGNED
    for path, route in walk(create_gateway(AppContext(environment)).routes):
        assert isinstance(route, Route), path
        assert path in known, path
    for surface in SURFACES:
        for who, token in (NO_KEYS | {"the engine's key": KEY}).items():
            for method in ("GET", "POST", "DELETE"):
                assert send(guarded.url, method, surface, token).status_code == 401, f"{surface}: {who}"
    for address in ("/upload/", "/upload/00000000-0000-4000-8000-000000000000"):
        assert send(guarded.url, "PUT", address, None).status_code == 404, address
    for address in ("1/1-x", "1/9999999999-x", "1/9999999999-" + 32 * "0" + "-reader"):
        assert send(guarded.url, "GET", f"/chatgpt/documents/{address}", None).status_code == 404, address


def arguments_for(tool):
    """Arguments of the right types, about things that are not there."""
    made = {"integer": 10**9, "string": "nobody-knows-it", "array": [], "boolean": False, "number": 1.0}
    properties = tool.input_schema["properties"]
    required = tool.input_schema.get("required", [])
    kinds = {name: properties[name].get("type", "string") for name in required}
    return {name: 0 if name == "chunk_index" else made[kind] for name, kind in kinds.items()}


@pytest.mark.parametrize("surface", SURFACES)
async def test_every_tool_is_shut_to_keys_with_less_than_its_right(guarded, reader, writer, tagged, surface):
    every = set.union(*TOOLS.values())
    async with Client(f"{guarded.url}{surface}", auth=MCP_KEY) as agent:
        tools = await agent.list_tools()
    assert {tool.name for tool in tools} <= every, "say above which right a new tool needs"
    for key, rights in ((reader, {"read"}), (writer, {"read", "write"}), (tagged, {"read", "write"})):
        async with Client(f"{guarded.url}{surface}", auth=key.token) as agent:
            for tool in tools:
                refusal = await refusal_of(agent, tool)
                [right] = [right for right, names in TOOLS.items() if tool.name in names]
                assert ("This key may" in refusal) is (right not in rights), f"{tool.name}: {refusal}"


async def refusal_of(agent, tool):
    """Why a tool refuses, or nothing."""
    try:
        await agent.call_tool(tool.name, arguments_for(tool))
    except ToolError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("surface", SURFACES)
async def test_nothing_that_an_agent_reads_tells_a_limited_key_of_other_documents(guarded, admin, tagged, surface):
    secret = admin.note("# Zanzibar\n\nthe zanzibar secret", tags=["zanzibar"], source_path="/zanzibar/secret.md")
    own = tagged.note("# Ownership\n\nzanzibar is far")
    for era in ("legacy", "2026-07-28"):
        async with Client(f"{guarded.url}{surface}", auth=tagged.token, mode=era) as agent:
            said = [agent.instructions or ""]
            for resource in await agent.list_resources():
                said += [str(resource), str(await agent.read_resource(resource.uri))]
            for template in await agent.list_resource_templates():
                uri = template.uri_template.partition("{?")[0].replace("{id}", str(secret)).replace("{page}", "1")
                with pytest.raises(Exception, match=r"(?i)there is no document|does not exist"):
                    await agent.read_resource(uri)
            for name, value in (
                ("tags", "zan"),
                ("source_path", "/zan"),
                ("source_path", "secret"),
                ("id", str(secret)),
            ):
                said.append(await completions(agent, name, value))
            said += [str(await agent.call_tool(*each)) for each in reads(surface)]
            text = "\n".join(said)
            assert "secret.md" not in text
            assert "zanzibar secret" not in text
            assert f'"{secret}"' not in text
            assert '"zanzibar"' not in text
            assert surface == "/chatgpt/mcp" or str(own) in text


async def completions(agent, name, value):
    """What an argument is completed by."""
    prompts = await agent.list_prompts()
    if not prompts:
        return ""
    from mcp_types import PromptReference

    answer = await agent.complete(PromptReference(type="ref/prompt", name="answer"), {"name": name, "value": value})
    return json.dumps([each for each in answer.values if each != value])


def reads(surface):
    """Calls that list or find documents."""
    if surface == "/chatgpt/mcp":
        return [("search", {"query": "zanzibar secret"})]
    return [
        ("kb_search", {"query": "zanzibar secret"}),
        ("kb_list", {"source_prefix": "/"}),
        ("kb_list", {}),
        ("kb_status", {}),
        ("kb_jobs", {}),
    ]
