"""kb stdio."""

import io
import sys
from pathlib import Path
from typing import Annotated

from kb.running_engine import data_folder
from kb_cli.runtime.config import key_headers, load_config, made_key
from kb_cli.runtime.options import option
from kb_cli.stdio_bridge import Bridge, Endpoint


def stdio(
    root: Annotated[
        list[Path] | None,
        option("--root DIR", "Let agents add files below this folder by path. You can repeat this."),
    ] = None,
) -> None:
    """Speak MCP over standard input and output.

    This is for clients that can only start programs. It passes all messages on to the MCP endpoint that 'kb mcp' shows,
    and starts 'kb serve' if no server is running on this machine.
    """
    config = load_config()
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    log = data_folder() / "stdio.log"  # for the output of a server that is started here
    endpoint = Endpoint(config.mcp_url, lambda: key_headers(config.mcp_api_key or made_key(config.mcp_url)), log)
    answers = None
    if root:
        from kb_cli.stdio_files import LocalFiles

        answers = LocalFiles(root, endpoint.post, endpoint.put).answers
    Bridge(endpoint, sys.stdout, answers).run(iter(sys.stdin.readline, ""))
