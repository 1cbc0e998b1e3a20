"""`kb serve`: everything in one process. The table of apps is the one place that says what is served where."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import uvicorn
from pydantic import Field

from kb.api.errors import SettingError
from kb.api.settings import EnvSettings, Key, listed, reveal
from kb.asgi.subapps import SubApp, choose, compose, installed
from kb.telemetry.logging import LogSettings, configure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from starlette.applications import Starlette

if sys.platform == "win32":
    from asyncio import run as run_loop
else:
    from uvloop import run as run_loop

logger = logging.getLogger(__name__)

ENGINE = "api"
METRICS = "metrics"
GRACE_SECONDS = 10

APPS = {
    ENGINE: SubApp(("/api", "/docs", "/openapi.json", "/healthz", "/readyz"), "kb.app:create_app"),
    "mcp": SubApp(("/mcp", "/collections/mcp", "/healthz", "/readyz"), "kb_mcp.app:create_app", is_client=True),
    METRICS: SubApp(("/metrics",), "kb.asgi.metrics:create_app", is_observer=True),
}


class Settings(EnvSettings):
    """How the process listens.

    Args:
        host: the address to listen on; beyond this machine keys are needed.
        port: the port to listen on; 0 takes a free one.
        apps: what to serve, with commas between the names.
        api_key: the key of the HTTP API.
        mcp_api_key: the keys of the MCP endpoint, with commas between them.
        mcp_api_key_file: a file with such keys, one a line.
        metrics_api_key: the key of the metrics, if it is another one than that of the HTTP API.
        allow_open: listen on the network without keys all the same.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    apps: str = ",".join(APPS)
    api_key: Key | None = None
    mcp_api_key: Key | None = None
    mcp_api_key_file: str | None = None
    metrics_api_key: Key | None = None
    allow_open: bool = False


def run(**flags: object) -> None:
    """Serve until told to stop. A flag that is given takes the place of its variable, for every app alike.

    Raises:
        StartError: something stops the start.
    """
    os.environ |= {f"KB_{name.upper()}": str(value) for name, value in flags.items() if value is not None}
    os.environ["FASTMCP_LOG_ENABLED"] = "false"  # it logs like the rest
    os.environ.setdefault("FASTMCP_TELEMETRY_MODE", "off")  # its spans would go nowhere
    os.environ.setdefault("PROMETHEUS_DISABLE_CREATED_SERIES", "true")
    configure(LogSettings.read())
    settings = Settings.read()
    chosen = choose(installed(APPS), listed(settings.apps))
    refuse_open_network(settings, chosen)
    with listen(settings) as listener:
        run_loop(serve(listener, compose(chosen, ENGINE)))


def refuse_open_network(settings: Settings, chosen: Collection[str]) -> None:
    """Refuse to listen beyond this machine without keys (requirement R-5).

    Raises:
        SettingError: a key is missing.
    """
    if settings.allow_open or is_loopback(settings.host):
        return
    for app, variable, key in (
        (ENGINE, "KB_API_KEY", reveal(settings.api_key)),
        ("mcp", "KB_MCP_API_KEY", reveal(settings.mcp_api_key) or settings.mcp_api_key_file),
        (METRICS, "KB_METRICS_API_KEY", reveal(settings.metrics_api_key) or reveal(settings.api_key)),
    ):
        if app in chosen and not key:
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


def listen(settings: Settings) -> socket.socket:
    """The socket. Whoever connects before the apps have started waits.

    Raises:
        SettingError: the address is not this machine's, or its port is taken.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingError(f"KB_HOST, KB_PORT: cannot listen on {settings.host}:{settings.port}: {reason}") from None
    # Connections inherit it; without it each answer waits for the acknowledgement of the one before (40 ms).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class Server(uvicorn.Server):
    """uvicorn raises the signal that stopped it once more, which would end the process before the apps have stopped.

    Args:
        config: how to serve.
        before_stop: is called before the server waits for the requests that are under way.
    """

    def __init__(self, config: uvicorn.Config, before_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_stop = before_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: no new connections, and an end of those that are open."""
        self._before_stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals as requests to stop, and be done with them."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


async def serve(listener: socket.socket, app: Starlette) -> None:
    """Start the apps, answer requests, stop the apps."""
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    async with app.router.lifespan_context(app):
        # What start-up made stays: collections that walk through all of it are what makes the slowest requests slow.
        gc.collect()
        gc.freeze()
        host, port = listener.getsockname()[:2]
        logger.info("serving http://%s:%s", f"[{host}]" if ":" in host else host, port)
        await Server(config, app.state.before_stop).serve([listener])
