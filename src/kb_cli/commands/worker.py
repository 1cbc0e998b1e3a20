"""kb worker: its flags. What it does is in kb_cli.server, as what kb serve does."""

from pathlib import Path
from typing import Annotated

import typer

from kb_cli.commands.serve import server


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
