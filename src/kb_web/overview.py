"""Show the state of the engine and its documents as charts, and how to connect agents."""

import asyncio
import json
import shlex
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kb.asgi.hosts import outer_address
from kb.asgi.security_headers import PAGE_HEADERS
from kb_web.document_html import Row
from kb_web.pages import kind, render, size, zone_of
from kb_web.rows import document_row, job_row
from kb_web.sessions import Visit

DAYS: Final = 30
MAX_COUNTED: Final = 2000
"""Maximum number of documents counted for the chart of recent days."""


async def overview(request: Request, visit: Visit) -> Response:
    status = await visit.engine.status()
    failed = await visit.engine.jobs(status="failed", limit=10)
    types = sorted(((kind(name), number) for name, number in status["documents"].items()), key=lambda row: -row[1])
    zone = zone_of(request)
    added, is_whole = await recent(visit, zone)
    return render(
        request,
        "overview.html",
        status=status,
        total=sum(status["documents"].values()),
        types=types,
        days=added,
        is_whole=is_whole,
        is_utc=zone is UTC,
        failed=[job_row(job) for job in failed["jobs"]],
    )


async def server(request: Request, visit: Visit) -> Response:
    """Show what the engine is made of, what it takes, and how fast it was in the last hour."""
    status, passed, used = await asyncio.gather(visit.engine.status(), activity(visit), storage(visit))
    return render(request, "server.html", status=status, passed=passed, storage=used)


async def recent(visit: Visit, zone: tzinfo) -> tuple[list[tuple[str, int]], bool]:
    """Return the number of documents added or changed on each recent day, and whether all were counted."""
    today = datetime.now(zone).date()
    first = today - timedelta(days=DAYS - 1)
    counts: Counter[date] = Counter()
    seen = 0
    async for page in visit.engine.document_pages(
        MAX_COUNTED, updated_after=datetime.combine(first, time.min, zone).isoformat(), sort="recent"
    ):
        seen += len(page["documents"])
        changed = (datetime.fromisoformat(row["updated_at"] or row["created_at"]) for row in page["documents"])
        counts.update(moment.astimezone(zone).date() for moment in changed)
    days = [first + timedelta(days=day) for day in range(DAYS)]
    return [(f"{day.day} {day:%b}", counts[day]) for day in days], seen < MAX_COUNTED


async def storage(visit: Visit) -> Row | None:
    report = await visit.engine.storage()
    names = {"database": "database", "originals": "original files", "backups": "backups"}
    parts = [(words, report[name]) for name, words in names.items() if report[name]]
    described = ", ".join(f"{name} {size(number)}" for name, number in parts)
    return {"title": f"Disk space: {described}", "parts": parts} if parts else None


async def activity(visit: Visit) -> list[Row]:
    """Return the activity of the last hour; empty for a key without access to it."""
    report = await visit.engine.activity()
    named = {"searches": "Searches", "ingestions": "Documents added"}
    return [worked(name, title, report[name]) for name, title in named.items() if report[name]]


def worked(name: str, title: str, work: Row) -> Row:
    """Return the activity of one kind in the last hour."""
    minutes = work["minutes"]
    ago = [f"{60 - number} min ago" for number in range(1, len(minutes))] + ["now"]
    rates = [(when, minute["count"]) for when, minute in zip(ago, minutes, strict=True)]
    times = {
        "median": [minute["p50_ms"] for minute in minutes],
        "95th percentile": [minute["p95_ms"] for minute in minutes],
    }
    most = max(minute["count"] for minute in minutes)
    return work | {"name": name, "title": title, "most": most, "rates": rates, "times": times}


async def connect(request: Request, visit: Visit) -> Response:
    """Show the settings to paste into common MCP clients."""
    await visit.require()
    url = f"{outer_address(request)}/mcp"
    is_keyed = request.app.state.settings.has_key
    headers = {"Authorization": "Bearer KEY"} if is_keyed else {}
    return render(request, "connect.html", url=url, is_keyed=is_keyed, clients=clients(url, headers))


def clients(url: str, headers: dict[str, str]) -> Iterable[Row]:
    """Return the settings to paste and their place for each client."""
    server: dict[str, Any] = {"url": url} | ({"headers": headers} if headers else {})
    header = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    command = shlex.join(["claude", "mcp", "add", "--transport", "http", "--scope", "user", "kb", url, *header])
    typed = {"type": "http", **server}
    env = {"KB_MCP_URL": url} | ({"KB_MCP_API_KEY": "KEY"} if headers else {})
    desktop = _json({"mcpServers": {"kb": {"command": "kb", "args": ["stdio"], "env": env}}})  # it only starts programs
    return [
        {"name": "Claude Code", "place": "in a terminal", "text": command},
        {
            "name": "Claude Desktop",
            "place": "claude_desktop_config.json; needs kb on the same machine",
            "text": desktop,
        },
        {"name": "Cursor", "place": "~/.cursor/mcp.json", "text": _json({"mcpServers": {"kb": server}})},
        {"name": "VS Code", "place": ".vscode/mcp.json", "text": _json({"servers": {"kb": typed}})},
        {"name": "Other clients", "place": "Streamable HTTP", "text": _json({"mcpServers": {"kb": typed}})},
    ]


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


MAX_SHOWN: Final = 10_000
"""Maximum number of documents on the engine's map."""

LISTED: Final = 12


async def document_map(request: Request, visit: Visit) -> Response:
    """Show the map; the script draws it and lists the visible documents."""
    page, status = await asyncio.gather(visit.engine.documents(sort="recent", limit=LISTED), visit.engine.status())
    total = sum(status["documents"].values())
    documents = [document_row(document) for document in page["documents"]]
    return render(request, "map.html", documents=documents, total=total, most=MAX_SHOWN)


async def points(_: Request, visit: Visit) -> Response:
    """Return the positions of the documents as the engine sends them: up to a megabyte, which needs no parsing here."""
    return visit.stream("map", PAGE_HEADERS)
