"""kb stdio."""

import io
import sys

from kb.running_engine import data_folder
from kb_cli.runtime.config import load_config
from kb_cli.stdio_bridge import Bridge, Endpoint


def stdio() -> None:
    """Speak MCP over standard input and output.

    This is for clients that only start programs. It passes everything on to the endpoint that 'kb mcp' names, and
    starts 'kb serve' if nothing answers on this machine.
    """
    config = load_config()
    headers = {"Authorization": f"Bearer {config.mcp_api_key}"} if config.mcp_api_key else {}
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", newline="\n")
    log = data_folder() / "stdio.log"  # of a server that is started here: beside what it keeps
    Bridge(Endpoint(config.mcp_url, headers, log), sys.stdout).run(iter(sys.stdin.readline, ""))
