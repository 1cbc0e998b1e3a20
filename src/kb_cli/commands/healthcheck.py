"""kb healthcheck: check the server, so that a container needs no other program for it."""

import http.client
from typing import Annotated

from kb.api.errors import EngineUnreachable, Unavailable
from kb_cli.runtime.options import option
from kb_cli.runtime.output import print_line

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
