"""Do something as one operation, and say so with a way to undo it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from starlette.datastructures import FormData

from kb_web.pages import WITHIN
from kb_web.sessions import Notice, Visit


@dataclass(slots=True)
class Outcome:
    """The text of a notice, another one if nothing has changed, and the page of kb that shows it."""

    place: str
    text: str = ""
    if_unchanged: str = ""


@asynccontextmanager
async def one_operation(visit: Visit, place: str) -> AsyncIterator[Outcome]:
    """Combine all changes inside into one operation; then leave a notice from which it can be undone."""
    key, outcome = uuid4().hex, Outcome(place)
    visit.engine.begin_operation(key)
    try:
        yield outcome
    finally:
        visit.engine.begin_operation(None)
    made = (await visit.engine.operations(limit=1, key=key))["operations"]
    text = outcome.text if made else outcome.if_unchanged or outcome.text
    visit.leave_notice(Notice(text, made[0]["number"] if made else None, place))


def place_in(form: FormData, otherwise: str = "") -> str:
    """Return the page of kb that a form asks to return to."""
    back = str(form.get("back", ""))
    return back if back and WITHIN.fullmatch(back) else otherwise
