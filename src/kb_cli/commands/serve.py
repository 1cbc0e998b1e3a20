"""kb serve and kb worker: their flags. What they do is in kb_cli.server, which needs the engine's packages."""

import gc
import signal
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from kb_cli.runtime.deadline import interrupt_start
from kb_cli.runtime.engine_parts import EXTRAS
from kb_cli.runtime.exit_codes import LocalError


def serve(
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Where to listen, instead of KB_HOST.")] = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="The port, instead of KB_PORT.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where everything is kept, instead of KB_DATA_DIR.")
    ] = None,
    apps: Annotated[str | None, typer.Option(metavar="A,B", help="Which apps to serve, instead of KB_APPS.")] = None,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="auto, cpu, cuda or rocm, instead of KB_DEVICE.")
    ] = None,
) -> None:
    """Start the server: engine, MCP endpoint, pages and metrics.

    It listens on http://127.0.0.1:8000 and keeps everything in ~/.local/share/kb, unless told otherwise. The first
    start fetches the model. Ctrl-C stops it; 'kb service install' runs it in the background.
    """
    server().run(host=host, port=port, data_dir=data_dir, apps=apps, device=device)


def server() -> ModuleType:
    """Return the module that serves. From here on, a signal to stop ends the start.

    Raises:
        LocalError: the engine's packages are not installed.
    """
    # The first process of a container is not told of what it does not handle, and a start takes seconds.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt_start)
    # Most of what the start makes stays: collections that walk through it take a fifth of the start's time.
    gc.disable()
    try:
        return import_module("kb_cli.server")
    except ModuleNotFoundError as error:
        raise LocalError(f"{error.name} is not installed; the engine needs 'kb-local[{EXTRAS}]'.") from None


def worker(
    host: Annotated[str | None, typer.Option(metavar="HOST", help="Where to listen, instead of KB_HOST.")] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="The port of probes and metrics, instead of KB_PORT or a free one."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A folder of its own, instead of KB_DATA_DIR.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="auto, cpu, cuda or rocm, instead of KB_DEVICE.")
    ] = None,
) -> None:
    """Work on the queue of a database in PostgreSQL.

    Any number may run beside its engines. It answers /healthz, /readyz and /metrics, and nothing else. Each needs a
    data directory of its own, and the model that the engines have.
    """
    server().work(host=host, port=port, data_dir=data_dir, device=device)
