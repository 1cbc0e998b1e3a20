"""What goes wrong in the engine is the same error for its clients, and is drawn where errors are read about."""

from __future__ import annotations

import inspect
import re

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from kb.api import errors
from kb.api.errors import BY_CODE, KbError
from kb.asgi.problem import on_kb_error
from kb.client.asgi import ASGITransport
from kb.client.client import EngineClient

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, KbError)]
SENT = [kind for kind in KINDS if "code" in vars(kind)]


@pytest.mark.parametrize("kind", SENT)
async def test_an_error_with_a_code_of_its_own_comes_over_the_client_as_it_was_raised(kind):
    async def fail(_):
        raise kind("why", extra={"more": [1]})

    app = Starlette(routes=[Route("/{path:path}", fail)], exception_handlers={KbError: on_kb_error})
    async with EngineClient("http://engine", transport=ASGITransport(app)) as api:
        with pytest.raises(KbError) as raised:
            await api.maintenance()
    assert type(raised.value) is kind
    assert (raised.value.status, raised.value.detail, raised.value.extra) == (kind.status, "why", {"more": [1]})


def test_no_two_errors_have_the_same_code():
    assert len(BY_CODE) == len(SENT)


def test_every_error_is_drawn_in_the_tree_below_the_one_that_it_is_a_kind_of_with_its_status_and_code():
    above, drawn = {}, {}
    for indent, name, rest in re.findall(r"(?m)^    ([ │├└─]*)(\w+) *(.*)$", errors.__doc__):
        above[len(indent)] = name
        drawn[name] = (above.get(len(indent) - 4), rest)
    assert drawn.keys() == {kind.__name__ for kind in KINDS}
    for kind in KINDS:
        parent, rest = drawn[kind.__name__]
        assert parent == (kind.__base__.__name__ if kind is not KbError else None)
        assert (rest == f"{kind.status} {kind.code}") == (kind in SENT), kind
