"""`kb serve`: run everything in one process. The table of apps defines all paths."""

import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import time
from asyncio import CancelledError, Future, current_task, get_running_loop
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import uvicorn
from pydantic import Field
from starlette.applications import Starlette

from kb import __version__
from kb.api.errors import SettingError
from kb.asgi.security_headers import ANSWER_HEADERS
from kb.asgi.subapps import SubApp, choose, compose, installed
from kb.filesystem import raise_file_limit
from kb.running_engine import FIRST_KEY, Running, data_folder, find_running, write_running
from kb.settings import EnvSettings, listed, variable, with_flags
from kb.telemetry.logging import LogSettings, configure
from kb_cli.http_protocol import Connections, HttpProtocol
from kb_cli.runtime import banner
from kb_cli.runtime.allocator import limit_arenas, trim
from kb_cli.runtime.deadline import end_in_time
from kb_cli.runtime.exit_codes import INTERRUPTED
from kb_cli.runtime.service_manager import READY, STOPPING, Watchdog, notify
from kb_cli.watch_process import watch_folder, watching

if sys.platform == "win32":
    from asyncio import run as run_loop
else:
    from uvloop import run as run_loop

logger = logging.getLogger(__name__)

ENGINE = "api"
GRACE_SECONDS = 3
"""How long running requests may take after the server begins to stop."""
SWITCH_SECONDS: Final = 0.001
"""How long a thread that computes may keep the interpreter from others. With Python's 5 ms, a request that reads from
the database many times waits that often for the threads of an import.
"""

MAX_CONNECTIONS: Final = 2000
"""The maximum number of open connections; less if the process may not open so many files."""

RECEIVE_SECONDS: Final = 30.0
"""The time limit for the headers of a request, for the next part of its body, and for reading part of the response."""

RESERVED_FILES: Final = 256
"""Files that the process may open in addition to connections: the database, uploads, the parser."""

APPS = {
    ENGINE: SubApp(
        "kb.app:create_app",
        paths=("/api", "/docs", "/openapi.json", "/healthz", "/readyz"),
        keys=("api_key", "api_key_file"),
    ),
    "mcp": SubApp(
        "kb_mcp.app:create_app",
        paths=(
            *("/mcp", "/collections/mcp", "/chatgpt", "/upload", "/healthz", "/readyz"),
            *("/.well-known", "/authorize", "/token", "/register", "/revoke"),
        ),
        keys=("mcp_api_key", "mcp_api_key_file"),
        settings="kb_mcp.settings:GatewaySettings",
    ),
    "metrics": SubApp(
        "kb.asgi.metrics:create_app",
        paths=("/metrics",),
        keys=("metrics_api_key", "api_key", "api_key_file"),
        settings="kb.asgi.metrics:MetricsSettings",
    ),
    "web": SubApp("kb_web.app:create_app", paths=("/",), keys=("api_key", "api_key_file")),
}

WORKER = "worker"
WORKER_APPS = {
    WORKER: SubApp("kb.app:create_worker", paths=("/healthz", "/readyz")),
    "metrics": APPS["metrics"],
}
"""The apps of `kb worker`: probes, which need no key, and metrics."""


class ServeSettings(EnvSettings):
    """How the process listens.

    Args:
        host: the address to listen on. An address that other machines can reach requires keys.
        port: the port to listen on. 0 takes a free port.
        apps: the apps to serve, separated by commas.
        allow_open: serve an app without a key even if other machines can reach it, or another app has a key.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    apps: str = ",".join(APPS)
    allow_open: bool = False


def run(**flags: object) -> None:
    """Serve until stopped. A flag overrides its variable for every app.

    Raises:
        StartError: the start fails.
    """
    environment = with_first_key(with_flags(os.environ, **flags))
    log = LogSettings.read(environment)
    is_for_person = banner.is_for_person(environment)
    configure(log.model_copy(update={"log_level": "warning"}) if is_for_person else log)
    settings = ServeSettings.read(environment)
    chosen = choose(installed(APPS), listed(settings.apps))
    refuse_open(settings, chosen, environment)
    prepare_process()
    folder = data_folder(environment)
    with listen(settings, folder) as listener:
        url = local_address(listener)
        banner.print_starting(folder) if is_for_person else logger.info("starting kb %s in %s", __version__, folder)
        is_open = any(app.keys and not any(is_set(key, environment) for key in app.keys) for app in chosen.values())
        print_ready = partial(banner.print_ready, url, folder, list(chosen), is_open=is_open)
        on_ready = print_ready if is_for_person else None
        if is_open:
            logger.info("no API key is set: %s", banner.OPEN)
        announce = partial(announced, folder if ENGINE in chosen else None, url, on_ready, environment)
        app = compose(chosen, ENGINE, environment, partial(watch_folder, url, environment), url)
        run_until_stopped(serve(listener, app, announce))


def with_first_key(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the key that the page *Keys* made, unless an API key is set."""
    file = data_folder(environment) / FIRST_KEY
    api, mcp = (any(is_set(key, environment) for key in APPS[app].keys) for app in (ENGINE, "mcp"))
    if api or not file.is_file():
        return environment
    return with_flags(environment, api_key_file=file, mcp_api_key_file=None if mcp else file)


def work(**flags: object) -> None:
    """Process the queue until stopped. The flags are the same as for `run`; without a port, kb takes a free one.

    Raises:
        StartError: the start fails.
    """
    environment = with_flags(os.environ, **flags)
    environment = with_flags(environment, port=environment.get(variable("port")) or 0)
    configure(LogSettings.read(environment))
    settings = ServeSettings.read(environment)
    refuse_open(settings, {name: app for name, app in WORKER_APPS.items() if app.keys}, environment)
    prepare_process()
    with listen(settings) as listener:
        run_until_stopped(serve(listener, compose(WORKER_APPS, WORKER, environment)))


def run_until_stopped(serving: Coroutine[Any, Any, None]) -> None:
    """Run the server.

    Raises:
        KeyboardInterrupt: a signal stopped the start.
    """
    try:
        run_loop(serving)
    except CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def cancelled_by_signals() -> Iterator[None]:
    """Cancel this task on a signal.

    An exception within a step would lose a starting thread, which would then never be joined.
    """
    loop, task = get_running_loop(), current_task()

    def cancel(_number: int, _frame: FrameType | None) -> None:
        end_in_time(INTERRUPTED)
        if task:
            loop.call_soon_threadsafe(task.cancel)

    previous = {number: signal.signal(number, cancel) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def prepare_process() -> None:
    """Limit unused memory, and make new files private."""
    limit_arenas()
    os.umask(0o077)


@contextmanager
def announced(
    folder: Path | None, url: str, on_ready: Callable[[], None] | None, environment: Mapping[str, str]
) -> Iterator[None]:
    """Publish the address of the engine for local commands during the block, and watch folders of this machine."""
    if folder:
        write_running(folder, Running(os.getpid(), url, time.time()))
    if on_ready:
        on_ready()
    try:
        with watching(url, environment) if folder else nullcontext():
            yield
    finally:
        if folder:
            write_running(folder, None)


def local_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - a wildcard only works for listening
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def refuse_open(settings: ServeSettings, chosen: Mapping[str, SubApp], environment: Mapping[str, str]) -> None:
    """Refuse to serve an app without a key if others can connect or another key is set (requirement R-5)."""
    if settings.allow_open:
        return
    guards = [variable(key) for app in {**APPS, **chosen}.values() for key in app.keys if is_set(key, environment)]
    for name, app in chosen.items():
        if any(is_set(key, environment) for key in app.keys):
            continue
        missing = f"{variable(app.keys[0])}: required" if app.keys else f"KB_APPS: {name} has no key, which is required"
        if not is_loopback(settings.host):
            raise SettingError(
                f"{missing} to listen on {settings.host}, because others can connect there."
                " To serve anyone without a key, set KB_ALLOW_OPEN=1."
            )
        if guards:
            raise SettingError(
                f"{missing} in addition to {guards[0]}, because every client that can connect may use {app.paths[0]}."
                " To serve it without a key, set KB_ALLOW_OPEN=1."
            )


def is_set(key: str, environment: Mapping[str, str]) -> bool:
    return bool(environment.get(variable(key), "").strip())


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listen(settings: ServeSettings, folder: Path | None = None) -> socket.socket:
    """Return a listening socket. Clients that connect before the apps have started wait."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host.strip("[]"), settings.port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0]
        running = find_running(folder) if folder else None
        remedy = f"kb is already running at {running}" if running else "choose another port with --port"
        raise SettingError(
            f"KB_HOST, KB_PORT: cannot listen on {settings.host}:{settings.port}: {reason}; {remedy}."
        ) from None
    # Connections inherit it; otherwise, each response waits for the acknowledgement of the previous one (40 ms).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def serve(
    listener: socket.socket,
    app: Starlette,
    announce: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Start the apps, serve requests, stop the apps."""
    connections = Connections(most_connections(), RECEIVE_SECONDS)
    protocol: Any = partial(HttpProtocol, connections)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        headers=ANSWER_HEADERS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    async with AsyncExitStack() as stack:
        with cancelled_by_signals():
            await stack.enter_async_context(app.router.lifespan_context(app))
        stack.enter_context(announce())
        trim()
        server = HttpServer(config, app.state.before_stop, connections, partial(end_in_time, 0))
        app.state.started.add_done_callback(server.on_started)
        host, port = listener.getsockname()[:2]
        logger.info("serving http://%s:%s", f"[{host}]" if ":" in host else host, port)
        notify(READY)
        await server.serve([listener])


def most_connections() -> int:
    """Return the maximum number of connections that leaves enough files for other uses."""
    files = raise_file_limit()
    most = min(MAX_CONNECTIONS, files - min(RESERVED_FILES, files // 2))
    if most < MAX_CONNECTIONS:
        logger.warning("kb accepts at most %s connections, because the process can open only %s files", most, files)
    return most


class HttpServer(uvicorn.Server):
    """uvicorn's server, except that it does not raise the signal again, which would exit before the apps have stopped.

    Args:
        before_stop: called before the server waits for running requests.
        connections: the connections that `config` creates.
        on_exit: called at the first signal with a function that returns whether requests are unfinished.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        before_stop: Callable[[], None],
        connections: Connections,
        on_exit: Callable[[Callable[[], bool]], None] = lambda _: None,
    ) -> None:
        super().__init__(config)
        self._before_stop = before_stop
        self._connections = connections
        self._on_exit = on_exit
        self._watchdog = Watchdog()

    def on_started(self, started: Future[bool]) -> None:
        """Continue if all apps have started, otherwise stop."""
        # Exclude current objects from later collections, which would slow down the slowest requests. A collection
        # before that would take a tenth of the start and free only a megabyte.
        gc.freeze()
        gc.enable()
        trim()
        sys.setswitchinterval(SWITCH_SECONDS)
        self.should_exit |= not started.result()

    async def on_tick(self, counter: int) -> bool:
        """Close connections that keep the server waiting; uvicorn calls this ten times per second."""
        self._connections.close_late(get_running_loop().time())
        self._watchdog.tick()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify(STOPPING)
        self._before_stop()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Treat a signal as a request to stop; a second Ctrl-C stops at once."""
        if not self.should_exit:
            self._on_exit(lambda: bool(self.server_state.tasks))
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True
