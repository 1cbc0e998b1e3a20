"""The way of a program into kb: discovery, registration, consent, tokens, and the end of its access."""

from __future__ import annotations

import re
import sqlite3
from time import monotonic

import pytest

from tests.conftest import KEY, MCP_KEY
from tests.oauth.conftest import CALLBACK, CLAUDE, CLAUDES_CALLBACK, Program, answered


def test_a_401_names_the_metadata_and_the_scope(program, served):
    challenge = program.call(None).headers["www-authenticate"]
    assert f'resource_metadata="{served.url}/.well-known/oauth-protected-resource/mcp"' in challenge
    assert 'scope="read write"' in challenge
    assert "error" not in challenge
    assert 'error="invalid_token"' in program.call("kb_wrong").headers["www-authenticate"]


@pytest.mark.parametrize("path", ["", "/mcp", "/collections/mcp", "/chatgpt/mcp"])
def test_each_endpoint_says_who_gives_tokens_for_it(program, served, path):
    found = program.http.get(f"/.well-known/oauth-protected-resource{path}")
    assert found.json()["resource"] == f"{served.url}{path or '/mcp'}"
    assert found.json()["authorization_servers"] == [served.url]
    assert found.json()["scopes_supported"] == ["read", "write"]


def test_the_server_announces_what_clients_look_for(program, served):
    said = program.http.get("/.well-known/oauth-authorization-server").json()
    assert said["issuer"] == served.url
    assert said["code_challenge_methods_supported"] == ["S256"]
    assert "none" in said["token_endpoint_auth_methods_supported"]
    assert said["client_id_metadata_document_supported"] is True
    assert said["authorization_response_iss_parameter_supported"] is True
    assert said["scopes_supported"] == ["read", "write", "offline_access"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert said[f"{name}_endpoint"].startswith(f"{served.url}/")


def test_a_program_signs_in_and_works_with_the_rights_of_the_key(program, make_key, admin):
    name, key = make_key(tags=["work"])
    answer = program.consent(key)
    back = answered(answer)
    assert answer.headers["location"].startswith(f"{CALLBACK}?")
    assert (back["state"], back["iss"]) == ("a/b+c==&d", program.url)
    tokens = program.exchange(back["code"]).json()
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert tokens["scope"] == "read write offline_access"
    assert program.is_let_in(tokens["access_token"])
    noted = program.call(tokens["access_token"], "kb_addnote", text="The kiln is at the harbour")
    document = admin.ok("GET", "documents?sort=recent&limit=1")["documents"][0]
    assert (noted.status_code, document["tags"]) == (200, ["work"])
    [grant] = [each for each in admin.ok("GET", "grants")["grants"] if each["key_name"] == name]
    assert (grant["client_name"], grant["resource"]) == ("A program", program.resource)
    assert grant["used_at"]


def test_the_gateways_own_key_lets_a_program_in_and_a_read_key_lets_it_read(program, make_key):
    assert program.is_let_in(program.sign_in(MCP_KEY)["access_token"])
    tokens = program.sign_in(make_key(right="read")[1])
    assert tokens["scope"] == "read offline_access"
    refused = program.call(tokens["access_token"], "kb_addnote", text="no")
    assert refused.json()["result"]["isError"]


def test_a_program_that_asked_only_to_read_is_told_which_scope_it_lacks(program, make_key):
    tokens = program.sign_in(make_key()[1], scope="read")
    assert tokens["scope"] == "read"
    refused = program.call(tokens["access_token"], "kb_addnote", text="no")
    assert refused.status_code == 403
    assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
    assert 'scope="read write"' in refused.headers["www-authenticate"]
    assert program.is_let_in(tokens["access_token"])


def test_refresh_tokens_rotate_and_the_second_use_of_one_ends_the_access(program, tokens):
    renewed = program.refresh(tokens["refresh_token"]).json()
    assert program.is_let_in(renewed["access_token"])
    assert not program.is_let_in(tokens["access_token"])
    again = program.refresh(tokens["refresh_token"])
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert not program.is_let_in(renewed["access_token"])
    assert program.refresh(renewed["refresh_token"]).status_code == 400


def test_a_program_can_ask_for_less_when_it_renews(program, tokens):
    renewed = program.refresh(tokens["refresh_token"], scope="read").json()
    assert renewed["scope"] == "read"
    assert program.call(renewed["access_token"], "kb_addnote", text="no").status_code == 403
    assert program.refresh(renewed["refresh_token"]).json()["scope"] == "read write offline_access"


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_program_that_revokes_one_token_loses_both(program, tokens, kind):
    form = {"token": tokens[kind], "client_id": program.client_id, "token_type_hint": kind, "client_secret": ""}
    assert program.http.post("/revoke", data=form).status_code == 200
    assert not program.is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).status_code == 400
    assert program.http.post("/revoke", data=form).status_code == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_program_revokes_a_token_without_a_secret_as_it_has_none(program, tokens, kind):
    assert program.http.post("/revoke", data={"token": tokens[kind], "client_id": program.client_id}).status_code == 200
    assert not program.is_let_in(tokens["access_token"])
    assert program.refresh(tokens["refresh_token"]).status_code == 400


def test_a_program_cannot_revoke_the_token_of_another(program, tokens):
    other = program.register(client_name="Another").json()["client_id"]
    assert program.http.post("/revoke", data={"token": tokens["access_token"], "client_id": other}).status_code == 200
    assert program.is_let_in(tokens["access_token"])
    twice = f"client_id={other}&client_id={program.client_id}&token={tokens['access_token']}"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert program.http.post("/revoke", content=twice, headers=headers).status_code == 400


def test_a_key_without_calls_left_this_minute_is_told_so_at_all_addresses(program, make_key):
    tokens = program.sign_in(make_key(per_minute=3)[1])
    while program.is_let_in(tokens["access_token"]):
        pass
    form = {"token": tokens["access_token"], "client_id": program.client_id}
    assert program.http.post("/revoke", data=form).status_code == 429


@pytest.mark.parametrize("path", ["/authorize", "/token", "/register", "/revoke"])
def test_a_wrong_method_is_named(program, path):
    refused = program.http.put(path)
    assert (refused.status_code, refused.headers["content-type"]) == (405, "application/problem+json")


@pytest.mark.parametrize(("scope", "writes"), [("read", False), ("write", True)])
def test_the_page_says_what_the_program_gets_rather_than_what_it_asks_for(program, scope, writes):
    page = program.authorize(scope=scope).text
    assert "search and read your documents" in page
    assert ("add, change and delete documents" in page) is writes
    assert "stay connected until you disconnect it" in page


def test_access_ends_with_its_key_and_can_be_ended_by_itself(program, make_key, admin):
    (first, key), (_, other) = make_key(), make_key()
    under_first, under_other = program.sign_in(key), program.sign_in(other)
    admin.ok("DELETE", f"keys/{first}")
    assert not program.is_let_in(under_first["access_token"])
    assert program.refresh(under_first["refresh_token"]).status_code == 400
    assert program.is_let_in(under_other["access_token"])
    grant = admin.ok("GET", "grants")["grants"][-1]
    admin.ok("DELETE", f"grants/{grant['id']}")
    assert not program.is_let_in(under_other["access_token"])
    assert admin("DELETE", f"grants/{grant['id']}").status_code == 404


def test_a_rotated_key_keeps_its_programs_only_for_the_grace_period(program, make_key, admin):
    name, key = make_key()
    tokens = program.sign_in(key)
    admin.ok("POST", f"keys/{name}/rotate", json={"grace_minutes": 5})
    assert program.is_let_in(tokens["access_token"])
    admin.ok("POST", f"keys/{name}/rotate", json={})
    assert not program.is_let_in(tokens["access_token"])


def test_a_new_key_of_the_same_name_does_not_bring_programs_back(program, make_key, admin):
    name, key = make_key()
    tokens = program.sign_in(key)
    admin.ok("DELETE", f"keys/{name}")
    admin.ok("POST", "keys", json={"name": name, "right": "write"})
    assert not program.is_let_in(tokens["access_token"])
    assert name not in {grant["key_name"] for grant in admin.ok("GET", "grants")["grants"]}


def test_equal_registrations_are_one_and_the_answer_repeats_refresh_token(program):
    first, again = (program.register(grant_types=["authorization_code"]) for _ in range(2))
    assert first.status_code == 201
    assert first.json() == again.json()
    assert first.json()["grant_types"] == ["authorization_code", "refresh_token"]
    assert first.json()["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in first.json()
    assert program.register(client_name="Another").json()["client_id"] != first.json()["client_id"]


def test_a_shipped_document_needs_no_request_to_others(served, make_key):
    with Program(served.url, CLAUDE, CLAUDES_CALLBACK) as claude:
        page = claude.authorize()
        assert "Claude wants to use your knowledge base" in page.text
        assert "described by claude.ai" in page.text
        assert claude.is_let_in(claude.sign_in(make_key()[1])["access_token"])


def test_a_program_on_this_machine_may_use_any_port_if_its_document_names_none(served, make_key):
    code = "https://claude.ai/oauth/claude-code-client-metadata"
    for callback in ("http://localhost:51234/callback", "http://127.0.0.1:3118/callback"):
        with Program(served.url, code, callback) as claude_code:
            assert claude_code.sign_in(make_key()[1])["access_token"]


def test_a_person_can_refuse(program):
    back = answered(program.consent("", decision="deny"))
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "a/b+c==&d", program.url)


def test_a_wrong_key_shows_the_page_again_and_a_right_one_goes_on(program, make_key):
    page = program.consent("kb_wrong")
    assert page.status_code == 401
    assert "This key is not valid here" in page.text
    assert program.decide(page, make_key()[1]).status_code == 303


@pytest.mark.sqlite
def test_only_digests_are_stored_and_nothing_is_logged(program, tokens, served):
    stored = served.log.parent / "kb.db"
    with sqlite3.connect(f"file:{stored}?mode=ro", uri=True) as database:
        rows = str(database.execute("SELECT * FROM grants").fetchall())
    said = served.log.read_text()
    for secret in (tokens["access_token"], tokens["refresh_token"], tokens["refresh_token"].split(".")[0]):
        assert secret not in rows
        assert secret not in said


def test_a_burst_of_calls_asks_the_engine_about_a_token_once_and_its_end_is_known_at_once(
    program, tokens, admin, served
):
    def asked():
        metrics = program.http.get("/metrics", headers={"Authorization": f"Bearer {KEY}"}).text
        lines = re.findall(r"kb_http_request_seconds_count\{[^}]*key/identify[^}]*\} (\d+)", metrics)
        return sum(map(int, lines))

    assert program.is_let_in(tokens["access_token"])
    before, begun = asked(), monotonic()
    assert all(program.is_let_in(tokens["access_token"]) for _ in range(10))
    assert asked() - before <= monotonic() - begun + 1
    admin.ok("DELETE", f"grants/{admin.ok('GET', 'grants')['grants'][-1]['id']}")
    assert not program.is_let_in(tokens["access_token"])
