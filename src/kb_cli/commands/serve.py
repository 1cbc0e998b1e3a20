"""kb serve and kb worker: their options. `kb_cli.server` runs them and needs the engine's packages."""

import gc
import http.client
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

from kb.api.errors import EngineUnreachable, Unavailable
from kb_cli.runtime.deadline import interrupt_start
from kb_cli.runtime.exit_codes import LocalError
from kb_cli.runtime.options import option
from kb_cli.runtime.output import print_line


def serve(
    host: Annotated[
        str | None, option("--host HOST", "The address to listen on. [env var: KB_HOST; default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, option("--port PORT", "The port to listen on. [env var: KB_PORT; default: 8000]")
    ] = None,
    data_dir: Annotated[
        Path | None, option("--data-dir FOLDER", "The data folder. [env var: KB_DATA_DIR; default: ~/.local/share/kb]")
    ] = None,
    notes: Annotated[
        Path | None, option("--notes FOLDER", "Keep each note as a file in this folder. [env var: KB_NOTES_DIR]")
    ] = None,
    apps: Annotated[
        str | None, option("--apps A,B", "The apps to serve. [env var: KB_APPS; default: api,mcp,metrics,web]")
    ] = None,
    device: Annotated[
        str | None,
        option("--device DEVICE", "What runs the model: auto, cpu, cuda or rocm. [env var: KB_DEVICE; default: auto]"),
    ] = None,
) -> None:
    """Start kb: engine, MCP endpoint, web interface and metrics.

    By default, it listens on http://127.0.0.1:8000 and keeps its data in ~/.local/share/kb. The first start downloads
    the model. Ctrl-C stops kb; 'kb service install' runs it in the background.
    """
    server().run(host=host, port=port, data_dir=data_dir, notes_dir=notes, apps=apps, device=device)


def server() -> ModuleType:
    """Return the server module. From here on, signals stop the start, and so does a terminal that is closed."""
    # The first process of a container ignores signals without a handler, and a start takes seconds.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt_start)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # `nohup` lets it run on
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    # Most objects of the start live on: garbage collections would take a fifth of the start's time.
    gc.disable()
    try:
        return import_module("kb_cli.server")
    except ModuleNotFoundError as error:
        raise LocalError(
            f"The Python module {error.name} is not installed. Reinstall kb-local with its dependencies."
        ) from None


def worker(
    host: Annotated[
        str | None, option("--host HOST", "The address to listen on. [env var: KB_HOST; default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, option("--port PORT", "The port for probes and metrics. [env var: KB_PORT; default: a free port]")
    ] = None,
    data_dir: Annotated[
        Path | None, option("--data-dir FOLDER", "The worker's own data folder. [env var: KB_DATA_DIR]")
    ] = None,
    device: Annotated[
        str | None,
        option("--device DEVICE", "What runs the model: auto, cpu, cuda or rocm. [env var: KB_DEVICE; default: auto]"),
    ] = None,
) -> None:
    """Process the queue of a PostgreSQL database.

    You can run any number of workers in addition to the engines. A worker answers only /healthz, /readyz and /metrics.
    Each worker needs its own data folder, and the same model as the engines.
    """
    server().work(host=host, port=port, data_dir=data_dir, device=device)


TIMEOUT = 5


def healthcheck(
    host: Annotated[str, option("--host HOST", "The address of the server.", envvar="KB_HOST")] = "127.0.0.1",
    port: Annotated[int, option("--port PORT", "The port of the server.", envvar="KB_PORT")] = 8000,
) -> None:
    """Check whether the server on this machine is ready."""
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        is_ready = connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException) as error:
        raise EngineUnreachable(f"No server answers at {host}:{port} ({error}). 'kb serve' starts one.") from None
    finally:
        connection.close()
    if not is_ready:
        raise Unavailable
    print_line("ready")
