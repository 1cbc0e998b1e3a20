"""`kb serve`: everything in one process. The table of apps is the one place that says what is served where."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import uvicorn
from pydantic import Field, SecretStr

from kb.asgi.subapps import SubApp, choose, compose, installed
from kb.contract.errors import SettingError
from kb.contract.settings import EnvSettings, reveal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from starlette.applications import Starlette

ENGINE = "api"
GRACE_SECONDS = 10

APPS = {
    ENGINE: SubApp(("/api", "/docs", "/openapi.json", "/healthz", "/readyz"), "kb.app:create_app"),
    "mcp": SubApp(("/mcp", "/healthz", "/readyz"), "kb_mcp.app:create_app", is_client=True),
}


class Settings(EnvSettings):
    """How the process listens.

    Args:
        apps: names from the table, with commas between them.
        allow_open: listen on the network without keys all the same.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    apps: str = ",".join(APPS)
    api_key: SecretStr | None = None
    mcp_api_key: SecretStr | None = None
    allow_open: bool = False


def run(**flags: object) -> None:
    """Serve until told to stop. A flag that is given takes the place of its variable, for every app alike.

    Raises:
        StartError: something stops the start.
    """
    os.environ |= {f"KB_{name.upper()}": str(value) for name, value in flags.items() if value is not None}
    os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = Settings.read()
    chosen = choose(installed(APPS), [name.strip() for name in settings.apps.split(",") if name.strip()])
    refuse_open_network(settings, chosen)
    asyncio.run(serve(settings, compose(chosen, ENGINE)))


def refuse_open_network(settings: Settings, chosen: Collection[str]) -> None:
    """Refuse to listen beyond this machine without keys (requirement R-5).

    Raises:
        SettingError: a key is missing.
    """
    if settings.allow_open or is_loopback(settings.host):
        return
    for app, variable, key in (
        (ENGINE, "KB_API_KEY", settings.api_key),
        ("mcp", "KB_MCP_API_KEY", settings.mcp_api_key),
    ):
        if app in chosen and not reveal(key):
            raise SettingError(
                f"{variable}: needed to listen on {settings.host}, where others can connect;"
                " or set KB_ALLOW_OPEN=1 to serve anyone."
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Server(uvicorn.Server):
    """uvicorn raises the signal that stopped it once more, which would end the process before the apps have stopped."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as requests to stop, and be done with them."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def serve(settings: Settings, app: Starlette) -> None:
    """Start the apps, answer requests, stop the apps."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    async with app.router.lifespan_context(app):
        # What start-up made stays: collections that walk through all of it are what makes the slowest requests slow.
        gc.collect()
        gc.freeze()
        await Server(config).serve()
