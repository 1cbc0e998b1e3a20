"""qmd, only with keyword search, because its other searches download language models. Needs `qmd` on the path."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peers.rankings.texts import Texts


def rank(texts: Texts, top: int) -> list[list[str]]:
    """Return the ids of the best texts for each query."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        notes.mkdir()
        for number, text in enumerate(texts.texts):
            (notes / f"{number}.md").write_text(text)
        _run(folder, "collection", "add", notes, "--name", "notes", "--mask", "**/*.md")
        found = [_run(folder, "search", query, "-n", top, "--json") for query in texts.queries]
    results = [json.loads(each) if each.startswith("[") else [] for each in found]
    return [[texts.ids[int(Path(result["file"]).stem)] for result in each] for each in results]


def _run(home: str, *arguments: object) -> str:
    command = ["qmd", *map(str, arguments)]
    places = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "XDG_CONFIG_HOME": f"{home}/config"}
    return subprocess.run(command, env=os.environ | places, capture_output=True, text=True, check=True).stdout
