"""The engine's parts, as the routes see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from kb.api.errors import Unavailable
from kb.api.models import Why
from kb.asgi.bearer import CALLER
from kb.documents.originals import Originals
from kb.embed.protocol import Embedder
from kb.ingest.stop import Stop
from kb.routes.queue import SearchQueue
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.protocol import Store
from kb.store.rows import Author
from kb.worker.loop import Worker
from kb.worker.reembed import Reembedder

MAX_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Services:
    """What `kb.app` built."""

    settings: Settings
    store: Store
    embedder: Embedder
    worker: Worker
    originals: Originals
    search: SearchService
    stop: Stop
    queue: SearchQueue
    reembedder: Reembedder


async def services_of(request: Request) -> Services:
    """Return the running engine's parts.

    Raises:
        Unavailable: it is still starting.
    """
    services: Services | None = getattr(request.app.state, "services", None)
    if services is None:
        raise Unavailable
    return services


ServicesDep = Annotated[Services, Depends(services_of)]
MAX_CLIENT = 100
"""How much of a client's name is kept."""


async def author_of(request: Request, why: Annotated[Why, Query()] = None) -> Author:
    """Return who makes the request."""
    return author_from(request, why)


def author_from(request: Request, why: str | None) -> Author:
    """Return who makes the request, for a reason that was given."""
    agent = request.headers.get("user-agent", "")[:MAX_CLIENT]
    return Author(request.scope.get(CALLER), agent if agent.isprintable() and agent else None, why)


AuthorDep = Annotated[Author, Depends(author_of)]
Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Limit = Annotated[int, Field(ge=1, le=MAX_ID, description="The most rows of a page.")]


class QueryModel(BaseModel):
    """A request's query: its values are read from text, an unknown one is refused."""

    model_config = ConfigDict(extra="forbid")
