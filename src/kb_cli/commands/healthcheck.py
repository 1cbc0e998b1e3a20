"""kb healthcheck: the program checks itself, so that a container needs no other one for it."""

import http.client
from typing import Annotated

import typer

from kb.api.errors import EngineUnreachable, Unavailable
from kb_cli.runtime.output import print_line

TIMEOUT = 5


def healthcheck(
    host: Annotated[str, typer.Option(metavar="HOST", envvar="KB_HOST", help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", envvar="KB_PORT", help="At which port.")] = 8000,
) -> None:
    """Ask the server on this machine whether it is ready."""
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        is_ready = connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException) as error:
        raise EngineUnreachable(f"Nothing answers at {host}:{port} ({error}).") from None
    finally:
        connection.close()
    if not is_ready:
        raise Unavailable
    print_line("ready")
