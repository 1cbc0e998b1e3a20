"""A gateway behind a proxy with TLS, which passes on its own name, or publishes kb under a path."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.conftest import KEY, MCP_KEY
from tests.mcp.conftest import start_gateway  # noqa: F401 - a fixture
from tests.oauth.conftest import CLAUDE, CLAUDES_CALLBACK, HIDDEN, Program, answered


@pytest.mark.parametrize("public", ["https://kb.example.org", "https://example.org/kb"])
def test_a_cloud_client_signs_in_through_a_proxy(served, make_key, start_gateway, public):  # noqa: F811
    """A proxy ends TLS, takes a path off, and passes on the name; addresses come from KB_PUBLIC_URL all the same."""
    settings = {"KB_ENGINE_URL": served.url, "KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_PUBLIC_URL": public}
    host, prefix = urlsplit(public).netloc, urlsplit(public).path
    passed_on = {"Host": host, "X-Forwarded-Proto": "https"} | ({"X-Forwarded-Prefix": prefix} if prefix else {})
    with start_gateway(**settings) as gateway, Program(gateway.url, CLAUDE, CLAUDES_CALLBACK) as claude:
        claude.http.headers.update(passed_on)
        claude.browser.headers.update(passed_on)
        metadata = f"https://{host}/.well-known/oauth-protected-resource{prefix}/mcp"
        assert f'resource_metadata="{metadata}"' in claude.call(None).headers["www-authenticate"]
        said = claude.http.get(urlsplit(metadata).path).json()
        assert (said["resource"], said["authorization_servers"]) == (f"{public}/mcp", [public])
        server = claude.http.get(f"/.well-known/oauth-authorization-server{prefix}").json()
        assert (server["issuer"], server["token_endpoint"]) == (public, f"{public}/token")
        page = claude.authorize(resource=f"{public}/mcp")
        assert "Secure" in page.headers["set-cookie"]
        form = dict(HIDDEN.findall(page.text.replace("&amp;", "&"))) | {"key": make_key()[1], "decision": "allow"}
        cookie = page.headers["set-cookie"].partition(";")[0]  # over TLS, a browser would send it
        sent = {"Origin": f"https://{host}", "Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        back = answered(claude.browser.post("/authorize", data=form, headers=sent))
        assert back["iss"] == public
        tokens = claude.exchange(back["code"], resource=f"{public}/mcp").json()
        assert claude.is_let_in(tokens["access_token"])
        claude.http.headers["Host"] = "evil.example"
        assert claude.call(tokens["access_token"]).status_code == 421
