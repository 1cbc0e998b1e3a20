"""Make `kb.mcpb`, which Claude Desktop installs with a double click, and `server.json` for the MCP registry.

`python packaging/bundle.py FOLDER [URL]`: the URL is the address of the bundle. The bundle has kb's source and its
pinned requirements. The host's uv installs them at the first start.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from kb import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
ABOUT: Final = "A fully local knowledge base for people and their AI agents"
SOURCES: Final = (
    "src",
    "docs",
    "pyproject.toml",
    "packaging/dependencies.py",
    "README.md",
    "LICENSE",
    "NOTICE",
    "requirements/runtime.txt",
)
SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
COMMAND: Final = ("run", "--no-project", "--with-requirements", "${__dirname}/requirements/runtime.txt")


def manifest() -> dict[str, Any]:
    """Return the manifest (MCPB 0.4)."""
    return {
        "manifest_version": "0.4",
        "name": "kb",
        "display_name": "kb",
        "version": __version__,
        "description": ABOUT,
        "author": {"name": "kb"},
        "server": {
            "type": "uv",
            "entry_point": "src/kb_cli/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": [*COMMAND, "--with", "${__dirname}", "kb", "stdio"],
                "env": {"KB_DATA_DIR": "${user_config.data_dir}"},
            },
        },
        "user_config": {
            "data_dir": {
                "type": "directory",
                "title": "Data folder",
                "description": "The folder in which kb stores its data.",
                "default": "${HOME}/.local/share/kb",
            }
        },
        "tools_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def name_in_registry(url: str) -> str:
    """Return kb's name in a namespace that the owner of an address may use: that of the domain, or a GitHub account."""
    address = urlsplit(url)
    host, account = address.hostname or "kb.local", address.path.split("/")[1:2]
    namespace = ["io", "github", *account] if host == "github.com" else reversed(host.split("."))
    return ".".join(namespace) + "/kb"


def server(bundle: Path, url: str) -> dict[str, Any]:
    """Return the registry's entry for a bundle at the address `url`."""
    package = {
        "registryType": "mcpb",
        "identifier": url,
        "version": __version__,
        "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        "transport": {"type": "stdio"},
    }
    about = {"name": name_in_registry(url), "description": ABOUT, "version": __version__}
    return {"$schema": SCHEMA, **about, "packages": [package]}


def sources() -> Iterator[Path]:
    """Yield the files of a bundle."""
    for name in SOURCES:
        files = (ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]
        yield from (file for file in files if file.is_file() and file.suffix != ".pyc")


def build(folder: Path, url: str) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / "kb.mcpb"
    with ZipFile(bundle, "w", ZIP_DEFLATED) as archive:
        # Without dates, so that the same sources give the same bundle.
        archive.writestr(ZipInfo("manifest.json"), json.dumps(manifest(), indent=2), ZIP_DEFLATED)
        for file in sorted(sources()):
            archive.writestr(ZipInfo(file.relative_to(ROOT).as_posix()), file.read_bytes(), ZIP_DEFLATED)
    (folder / "server.json").write_text(json.dumps(server(bundle, url), indent=2) + "\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "kb.mcpb")
