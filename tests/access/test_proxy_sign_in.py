"""People whom a proxy has signed in, and everybody else who sends the proxy's header."""

from __future__ import annotations

import httpx2
import pytest

from kb.api.errors import SettingError
from kb.asgi.proxy_sign_in import PEER, ProxySignIn
from tests.access.conftest import Api
from tests.conftest import KB_SERVE, KEY, MCP_KEY, free_port, launch

PROXY, HEADER = "127.0.0.2", "Remote-User"
SETTINGS = {"KB_API_KEY": KEY, "KB_MCP_API_KEY": MCP_KEY, "KB_APPS": "api,web", "KB_TRUSTED_HEADER": HEADER}
HOST = {"KB_ALLOWED_HOSTS": "kb.example.org"}


@pytest.fixture(scope="module")
def proxied(start_server, tmp_path_factory):
    with start_server(tmp_path_factory.mktemp("proxied"), FORWARDED_ALLOW_IPS=PROXY, **SETTINGS, **HOST) as server:
        yield server


@pytest.fixture(scope="module")
def admin(proxied):
    api = Api(proxied.url, KEY)
    for name, rights in {
        "ada": {"right": "write", "tags": ["ada"], "reads_all": True},
        "bob": {"right": "read", "tags": ["shared"]},
        "root": {"right": "admin"},
        "gone": {"right": "write"},
    }.items():
        api.ok("POST", "keys", json={"name": name, **rights})
    api.ok("DELETE", "keys/gone")
    return api


@pytest.fixture(scope="module")
def secret(admin):
    return admin.note("The glaze of Mondays", tags=["private"])


@pytest.fixture
def page(proxied, admin):
    """Opens a page, from the proxy or another address, with headers as (name, value)."""

    def opened(path, *headers, sender=PROXY, method="GET", **options):
        transport = httpx2.HTTPTransport(local_address=sender)
        with httpx2.Client(transport=transport, base_url=proxied.url) as client:
            headers = [("accept", "text/html"), ("x-forwarded-for", "192.0.2.7"), *headers]
            return client.request(method, path, headers=headers, **options)

    return opened


def test_each_person_has_the_rights_of_the_key_of_this_name(page, secret):
    assert page(f"/d/{secret}", (HEADER, "ada")).status_code == 200
    assert page(f"/d/{secret}", (HEADER, "root")).status_code == 200
    assert page(f"/d/{secret}", (HEADER, "bob")).status_code == 404
    assert page("/keys", (HEADER, "root")).status_code == 200
    assert page("/keys", (HEADER, "ada")).status_code == 403
    assert page("/", (HEADER, "bob")).status_code == 200


def test_a_person_changes_what_the_key_may_change_and_the_history_names_it(page, admin, secret):
    opened = page("/new", (HEADER, "ada"))
    token = opened.text.partition('name="token" value="')[2].partition('"')[0]
    cookie = ("cookie", f"kb_session={opened.cookies['kb_session']}")
    fields = {"token": token, "text": "A note about kilns", "tags": "ada"}
    assert page("/new", (HEADER, "ada"), cookie, method="POST", data=fields).status_code in (200, 303)
    assert "ada" in {line["by"] for line in admin.ok("GET", "audit")["lines"]}
    forged = page(f"/d/{secret}/delete", (HEADER, "root"), cookie, method="POST", data={"token": "0" * 64})
    assert forged.status_code == 403
    assert page(f"/d/{secret}/delete", (HEADER, "ada"), cookie, method="POST", data={"token": token}).status_code == 404
    assert admin("GET", f"documents/{secret}").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        [(HEADER, "root")],
        [(HEADER, "root"), ("x-forwarded-for", PROXY)],
        [(HEADER, "root"), ("x-forwarded-for", f"{PROXY}, {PROXY}"), ("forwarded", f"for={PROXY}")],
        [(HEADER, "root"), ("x-real-ip", PROXY)],
    ],
)
def test_the_header_from_another_address_is_nothing(page, secret, headers):
    for path in ("/", f"/d/{secret}", "/keys", "/settings"):
        assert page(path, *headers, sender="127.0.0.1").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        [(HEADER, "ada"), (HEADER, "root")],
        [(HEADER, "root"), (HEADER, "root")],
        [("REMOTE-USER", "root"), ("remote-user", "ada")],
        [(HEADER, "root,ada")],
        [(HEADER, "ro ot")],
        [(HEADER, "root\tx")],
        [(HEADER, "")],
        [(HEADER, "Root")],
        [(HEADER, "röot".encode())],
        [(HEADER, "ro%6ft")],
        [(HEADER, "../root")],
        [(HEADER, "gone")],
        [(HEADER, "nobody")],
        [(HEADER, "admin")],
        [(HEADER, "r" * 4000)],
        [(HEADER, KEY)],
    ],
)
def test_what_is_not_one_name_of_a_key_opens_nothing(page, secret, headers):
    for path in ("/", f"/d/{secret}", "/keys"):
        assert page(path, *headers).status_code in (401, 403)


def test_the_key_of_the_settings_has_no_name_here(page, admin):
    [name] = {line["by"] for line in admin.ok("GET", "audit")["lines"] if line["action"] == "key-make"}
    assert page("/keys", (HEADER, name)).status_code == 403


def test_a_key_that_is_revoked_opens_nothing_from_then_on(page, admin):
    admin.ok("POST", "keys", json={"name": "brief", "right": "read"})
    assert page("/", (HEADER, "brief")).status_code == 200
    admin.ok("DELETE", "keys/brief")
    assert page("/", (HEADER, "brief")).status_code == 403


def test_a_foreign_page_that_gives_the_address_a_name_of_its_own_opens_nothing(page, proxied):
    port = proxied.url.rpartition(":")[2]
    for path in ("/", "/keys", "/help/"):
        answer = page(path, (HEADER, "root"), ("host", f"evil.example:{port}"), ("sec-fetch-site", "same-origin"))
        assert answer.status_code == 421
    assert page("/keys", (HEADER, "root"), ("host", "kb.example.org")).status_code == 200


def test_a_name_that_is_underlined_is_another_header(page):
    assert page("/", ("Remote_User", "root")).status_code == 401


def test_the_header_opens_pages_and_neither_the_api_nor_its_metrics(page):
    for path in ("/api/v1/documents", "/api/v1/status", "/api/v1/keys"):
        assert page(path, (HEADER, "root")).status_code == 401
        behalf = page(path, (HEADER, "root"), ("KB-On-Behalf-Of", "root"))
        assert behalf.status_code == 401


def test_who_the_proxy_names_counts_more_than_an_earlier_sign_in_of_the_browser(page, secret):
    opened = page("/sign-in")
    token = opened.text.partition('name="token" value="')[2].partition('"')[0]
    cookie = ("cookie", f"kb_session={opened.cookies['kb_session']}")
    signed = page("/sign-in", cookie, method="POST", data={"token": token, "key": KEY})
    cookie = ("cookie", f"kb_session={signed.cookies['kb_session']}")
    assert page(f"/d/{secret}", cookie).status_code == 200
    assert page(f"/d/{secret}", cookie, (HEADER, "bob")).status_code == 404


@pytest.mark.parametrize("header", ["Authorization", "cookie", "", "Remote User", "Remote_User", "X:Y", "host"])
def test_a_header_that_others_set_is_refused(header):
    with pytest.raises(SettingError, match="KB_TRUSTED_HEADER"):
        ProxySignIn(header, PROXY)


@pytest.mark.parametrize("proxies", ["", " ", "*", "0.0.0.0/0", "::/0", "10.0.0.1, *", "proxy", "10.0.0.1/8"])
def test_proxies_that_may_be_anybody_are_refused(proxies):
    with pytest.raises(SettingError, match="FORWARDED_ALLOW_IPS"):
        ProxySignIn(HEADER, proxies)


@pytest.mark.parametrize(
    ("peer", "is_proxy"), [("10.0.0.9", True), ("::ffff:10.0.0.9", True), ("10.0.1.9", False), ("unix", False)]
)
def test_a_network_can_be_the_proxy(peer, is_proxy):
    scope = {"headers": [(b"remote-user", b"ada")], PEER: (peer, 1)}
    assert ProxySignIn(HEADER, "10.0.0.0/24, ::1").name_in(scope) == ("ada" if is_proxy else None)
    assert ProxySignIn(HEADER, "10.0.0.0/24").name_in({"headers": scope["headers"], "client": (peer, 1)}) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"KB_API_KEY": "", "KB_MCP_API_KEY": "", "FORWARDED_ALLOW_IPS": PROXY}, "set KB_API_KEY as well"),
        ({"FORWARDED_ALLOW_IPS": "*"}, "FORWARDED_ALLOW_IPS"),
        ({}, "needs the addresses of your proxy"),
    ],
)
def test_kb_does_not_start_where_anybody_could_sign_in(model_files, tmp_path, changes, says):
    settings = SETTINGS | {"KB_MODEL_DIR": str(model_files.onnx.parent)} | changes
    server = launch(tmp_path, free_port(), KB_SERVE, settings)
    assert server.process.wait(60) != 0
    assert says in server.log.read_text()
