"""kb on any system, as its user meets it: `python -m tests.smoke` serves, adds, searches, syncs, and asks over MCP.

It needs kb as installed with `pip install .`, and nothing else: neither make nor pytest. The model is
fetched at the first start, or taken from KB_MODEL_DIR.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
from fastmcp import Client

SECONDS = 300
"""The longest accepted start in seconds, including the download of the model."""

PORT = "18439"
KB = (sys.executable, "-m", "kb_cli.main")


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        environment = os.environ | {
            "KB_DATA_DIR": str(home / "data"),
            "KB_PORT": PORT,
            "HOME": folder,
            "USERPROFILE": folder,
        }
        server = subprocess.Popen([*KB, "serve"], env=environment)
        try:
            use(home, environment, server)
        finally:
            server.terminate()
            server.wait(60)


def use(home, environment, server):
    """Use the most frequent functions once."""
    url = f"http://127.0.0.1:{PORT}"
    await_ready(url, server)

    def kb(*words):
        done = subprocess.run(
            [*KB, *words], env=environment, cwd=home, capture_output=True, encoding="utf-8", check=False
        )
        print("$ kb", *words, f"\n{done.stdout}{done.stderr}")
        assert done.returncode == 0, words
        return done.stdout

    kb("addnote", "The spare key is with the neighbours.", "--wait")
    papers = home / "papers"
    papers.mkdir()
    (papers / "lease.md").write_text("# Lease\n\nThe lease ends in March 2028.\n", "utf-8")
    kb("add", str(papers / "lease.md"), "--wait")
    (papers / "boats.txt").write_text("The ropes of the boats are renewed in spring.\n", "utf-8")
    kb("sync", str(papers))
    kb("jobs", "--follow")
    assert "neighbours" in kb("search", "spare key")
    assert "March 2028" in kb("search", "when does the lease end")
    assert "ropes" in kb("search", "renewed in spring")
    assert "lease.md" in httpx2.get(f"{url}/?q=lease", follow_redirects=True).text
    asyncio.run(ask_over_mcp(url))


async def ask_over_mcp(url):
    async with Client(f"{url}/mcp") as agent:
        found = await agent.call_tool("kb_search", {"query": "spare key"})
        assert "neighbours" in found.content[0].text


def await_ready(url, server):
    """Wait until kb serves."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx2.get(f"{url}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.2)
    raise SystemExit("kb did not start")


if __name__ == "__main__":
    main()
