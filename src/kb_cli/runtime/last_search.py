"""Remember the results of the last search in a terminal, so that they can be opened by number."""

import os
from pathlib import Path
from typing import Any, Final

from kb_cli.runtime.config import load_config
from kb_cli.runtime.exit_codes import UsageError

FILE: Final = "last-search.json"


def state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kb"


def remember(results: list[dict[str, Any]]) -> None:
    """Store the positions of the results; do nothing if that fails."""
    import json

    hits = [
        {"document_id": result["document_id"], "line": highlight_line(result), "page": result["place"]["page"]}
        for result in results
    ]
    file = state_folder() / FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(json.dumps({"engine": load_config().engine_url, "hits": hits}))
        file.chmod(0o600)
    except OSError:
        return


def recall(number: int) -> dict[str, Any]:
    import json

    try:
        last = json.loads((state_folder() / FILE).read_text())
    except (OSError, ValueError):
        last = {}
    if last.get("engine") != load_config().engine_url:
        raise UsageError(
            "kb does not know your last search on this engine. Run 'kb search' in a terminal, without piping or"
            " redirecting its output, or use the document's ID."
        )
    hits: list[dict[str, Any]] = last["hits"]
    if number > len(hits):
        raise UsageError(f"The last search had only {len(hits)} result{'s' * (len(hits) > 1)}. Choose one of them.")
    return hits[number - 1]


def highlight_line(result: dict[str, Any]) -> int:
    """Return the line of a passage's first highlight, or its first line."""
    text: str = result["text"]
    begin = len(text) - len(text.lstrip())
    first = min((start for start, _ in result["highlights"]), default=begin)
    return int(result["place"]["line_start"]) + text.count("\n", begin, first)
