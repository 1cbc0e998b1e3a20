"""The owner sees which programs have access, and disconnects them."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.access.test_pages import token_of
from tests.conftest import KEY, MCP_KEY


@pytest.fixture
def owner(served):
    """The owner's browser, signed in to the web interface."""
    headers = {"Accept": "text/html", "Origin": served.url}
    with httpx2.Client(base_url=served.url, follow_redirects=True, headers=headers) as browser:
        token = token_of(browser.get("/sign-in"))
        browser.post("/sign-in", data={"token": token, "key": KEY, "place": ""})
        yield browser


@pytest.mark.parametrize("is_own", [False, True])
def test_the_page_of_keys_lists_a_program_under_its_key_and_disconnects_it(owner, program, make_key, served, is_own):
    name, key = make_key()
    program.client_id = program.register(client_name=f"Prog-{name}").json()["client_id"]
    tokens = program.sign_in(MCP_KEY if is_own else key)
    assert program.is_let_in(tokens["access_token"])
    page = owner.get("/keys")
    listed = page.text.partition(f"Prog-{name}")[2]
    assert "may write" in listed[:100]
    assert "last used" in listed[:200]
    grant_id = re.search(r'name="name" value="([0-9a-f]{16})"', listed)[1]
    form = {"token": token_of(page), "act": "end", "name": grant_id}
    ended = owner.post("/keys", data=form, headers={"Origin": served.url})
    assert f"Disconnected “Prog-{name}”" in ended.text
    assert not program.is_let_in(tokens["access_token"])


def test_the_command_lists_and_disconnects_programs(program, make_key, served, run_kb):
    name, key = make_key()
    tokens = program.sign_in(key)
    said = run_kb("keys")
    [line] = [line for line in said.splitlines() if name in line and "A program" in line]
    grant_id = line.split()[-1]
    assert run_kb("keys", "end", grant_id) == "A program is disconnected\n"
    assert not program.is_let_in(tokens["access_token"])
    assert grant_id not in run_kb("keys")
