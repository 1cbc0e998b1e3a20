"""Whether an engine or a worker is ready, as its probe asks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from kb.api.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from starlette.requests import Request

    from kb.store.protocol import Store

logger = logging.getLogger(__name__)


async def ready(request: Request) -> bool:
    """Return whether the model is warm and the database answers."""
    services = request.app.state.services
    return services is not None and await run_in_threadpool(answers, services.store)


def answers(store: Store) -> bool:
    """Return whether the database can be read; the log says why not."""
    try:
        store.check()
    except (StoreError, StoreUnavailable) as error:
        logger.warning("%s", error)
        return False
    return True
