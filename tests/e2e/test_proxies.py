"""The examples of docs/proxy.md, with the real nginx and Caddy, if they are installed (Debian: nginx, caddy)."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import contextmanager

import httpx2
import pytest
from lxml import html

from tests.conftest import ALL_APPS, KEY, MCP_KEY, ROOT, free_port
from tests.support.eventually import eventually

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "proxy.md").read_text()
NGINX, CADDY = shutil.which("nginx"), shutil.which("caddy")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
needs_caddy = pytest.mark.skipif(CADDY is None, reason="Caddy is not installed")
PUBLIC = "https://kb.example.org"
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def examples(begin):
    """The blocks of the page that begin with a text."""
    return [block for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) if block.startswith(begin)]


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("behind")
    names = {"KB_MCP_ALLOWED_HOSTS": "kb.example.org", "KB_ALLOWED_HOSTS": "kb.example.org", "KB_PUBLIC_URL": PUBLIC}
    with start_server(folder, KB_APPS=ALL_APPS, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, **names) as running:
        yield running


@contextmanager
def running(command, port, log):
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(f"it listens; see {log}", lambda: process.poll() is not None or answers(port))
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def answers(port):
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/", headers={"Host": "kb.example.org"})
    except httpx2.TransportError:
        return None


@pytest.fixture
def nginx(server, tmp_path):
    """nginx with the example at any port, and the one under a path, without TLS."""
    port = free_port()
    [site] = examples("server {")
    [below] = examples("location /kb/")
    site = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", site)
    site = re.sub(r"\n\s+ssl_certificate.*", "", site).rstrip().removesuffix("}") + below + "}"
    places = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("proxy", "fastcgi", "uwsgi", "scgi", "client_body")
    )
    text = (
        f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {places} {site} }}"
    ).replace("127.0.0.1:8000", server.url.removeprefix("http://"))
    (tmp_path / "nginx.conf").write_text(text)
    with running([NGINX, "-e", "stderr", "-c", tmp_path / "nginx.conf"], port, tmp_path / "log") as url:
        yield url


@pytest.fixture
def caddy(server, tmp_path, monkeypatch):
    port = free_port()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    sites = [
        site.replace("127.0.0.1:8000", server.url.removeprefix("http://"))
        for site in examples(("kb.example", "example.org"))
    ]
    whole = sites[0].replace("kb.example.org {", f"http://kb.example.org:{port} {{")
    below = sites[1].replace("example.org {", f"http://example.org:{port} {{")
    (tmp_path / "Caddyfile").write_text(f"{{\n    admin off\n}}\n{whole}\n{below}")
    with running(
        [CADDY, "run", "--config", tmp_path / "Caddyfile", "--adapter", "caddyfile"], port, tmp_path / "log"
    ) as url:
        yield url


def checked(url, host):
    """What a proxy publishes, and what not."""
    port = url.rpartition(":")[2]
    with httpx2.Client(base_url=url, headers={"Host": f"{host}:{port}"}) as http:
        headers = {"Authorization": f"Bearer {MCP_KEY}", "Accept": "application/json, text/event-stream"}
        tools = http.post("/mcp", json=LIST_TOOLS, headers=headers)
        assert tools.status_code == 200, tools.text
        assert "kb_search" in tools.text
        refused = http.post("/mcp", json=LIST_TOOLS)
        assert refused.status_code == 401
        place = "/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{PUBLIC}{place}"' in refused.headers["www-authenticate"]
        assert http.get(place).json()["resource"] == f"{PUBLIC}/mcp"
        about = http.get("/.well-known/oauth-authorization-server").json()
        assert {about[name] for name in ("authorization_endpoint", "token_endpoint")} == {
            f"{PUBLIC}/authorize",
            f"{PUBLIC}/token",
        }
        assert (http.get("/authorize").status_code, http.post("/token").status_code) == (400, 401)
        for hidden in ("/readyz", "/metrics", "/docs", "/api/v1/status", "/"):
            assert http.get(hidden).status_code == 404, hidden


def signed_in(url, host):
    """Sign in under the path, as a browser does; return the cookie."""
    port = url.rpartition(":")[2]
    with httpx2.Client(base_url=url, headers={"Host": f"{host}:{port}", "Accept": "text/html"}) as http:
        page = http.get("/kb/sign-in")
        token = html.fromstring(page.text).xpath("//body/@data-token")[0]
        cookie = page.headers["set-cookie"].partition(";")[0]
        form = {"key": KEY, "token": token, "place": ""}
        browser = {"Origin": f"http://{host}:{port}", "Sec-Fetch-Site": "same-origin", "Cookie": cookie}
        answer = http.post("/kb/sign-in", data=form, headers=browser)
        assert answer.status_code == 303, answer.text
        return answer.headers["set-cookie"]


@needs_nginx
def test_nginx_publishes_what_the_page_says_at_any_port(nginx):
    checked(nginx, "kb.example.org")


@needs_nginx
def test_behind_nginx_the_sign_in_works_at_any_port_and_its_cookie_is_for_the_path(nginx):
    assert "Path=/kb/" in signed_in(nginx, "kb.example.org")


@needs_caddy
def test_caddy_publishes_what_the_page_says_and_answers_404_elsewhere(caddy):
    checked(caddy, "kb.example.org")


@needs_caddy
def test_behind_caddy_the_sign_in_works_at_any_port_and_its_cookie_is_for_the_path(caddy):
    assert "Path=/kb/" in signed_in(caddy, "example.org")
