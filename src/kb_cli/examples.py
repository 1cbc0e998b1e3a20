"""Examples of each command, which stand below its help."""

from __future__ import annotations

from typing import Final

LINES: Final = {
    "add": (
        "kb add ~/Documents/reports --tags work --wait",
        "kb add lease.pdf --title 'Lease of the boat house'",
    ),
    "sync": (
        "kb sync ~/vault --delete",
        "kb sync ~/inbox --watch",
    ),
    "addnote": (
        "kb addnote 'Anna prefers short answers' --tags people",
        "pbpaste | kb addnote --title 'From the clipboard'",
    ),
    "updatenote": (
        "kb updatenote 42",
        "kb updatenote 42 'Anna prefers long answers now'",
        "kb updatenote 42 --append 'She said so again' --tags-add confirmed",
    ),
    "search": (
        "kb search how does Anna like her answers",
        "kb search roof repair --tags house --after 2026-01-01 -n 5",
    ),
    "similar": ("kb similar 42", "kb similar 42 --ids -n 3"),
    "eval": (
        "kb eval questions.yaml --json > before.json",
        "kb eval questions.yaml --compare before.json --plot scores.svg",
    ),
    "get": (
        "kb get 42",
        "kb get 42 --file ~/Downloads/",
    ),
    "open": (
        "kb open 42",
        "kb open -n 3",
    ),
    "list": (
        "kb list",
        "kb list --tags work --type pdf --all",
    ),
    "delete": (
        "kb delete 42",
        "kb delete 42 43 --yes",
    ),
    "history": (
        "kb history 42",
        "kb history 42 --json",
    ),
    "revert": (
        "kb revert 42 3",
        "kb revert 42 3 --why 'the new text was wrong'",
    ),
    "restore": (
        "kb restore 42",
        "kb restore ~/backups/kb",
    ),
    "bin": (
        "kb bin",
        "kb bin --json",
    ),
    "undo": (
        "kb undo --since 10m",
        "kb undo --since 10m --yes",
    ),
    "tag": (
        "kb tag 42 --add house,roof",
        "kb list --under ~/old --ids | xargs kb tag --remove todo",
    ),
    "tags": (
        "kb tags",
        "kb tags --json",
    ),
    "jobs": (
        "kb jobs --follow",
        "kb jobs dismiss",
    ),
    "status": (
        "kb status",
        "kb status --json",
    ),
    "stats": (
        "kb stats",
        "kb stats --json",
    ),
    "config": (
        "kb config",
        "kb --profile work config",
    ),
    "mcp": (
        "kb mcp claude-code",
        "kb mcp cursor --write",
    ),
    "backup": (
        "kb backup ~/backups/kb",
        "kb backup verify ~/backups/kb",
    ),
    "export": (
        "kb export ~/kb-export --vectors",
        "kb export ~/kb-notes --plain",
    ),
    "import": (
        "kb import ~/kb-export",
        "KB_DATABASE_URL=postgresql://kb@db.example.com/kb kb import ~/kb-export",
    ),
    "doctor": (
        "kb doctor",
        "kb doctor --fix",
    ),
    "keys": (
        "kb keys make laptop-agent --right write --tags work",
        "kb keys rotate laptop-agent --grace 60",
    ),
    "audit": (
        "kb audit --by laptop-agent",
        "kb audit --document 42 --json",
    ),
    "hook": (
        "kb hook < event.json",
        "kb mcp claude-code --plugin ~/kb-plugin",
    ),
    "stdio": (
        "kb stdio",
        "kb mcp claude-desktop",
    ),
    "reindex": (
        "kb reindex",
        "KB_MODEL_DIR=~/models/bge kb reindex --vectors",
    ),
    "reembed": (
        "kb reembed --wait",
        "kb reembed status",
    ),
    "serve": (
        "kb serve",
        "kb serve --port 8123 --data-dir ~/kb-work",
    ),
    "worker": (
        "KB_DATABASE_URL=postgresql://kb@db/kb kb worker --data-dir ~/kb-worker",
        "kb worker --port 8001 --data-dir ~/kb-worker-2",
    ),
    "service": (
        "kb service install",
        "kb service status",
    ),
    "device": (
        "kb device",
        "kb device --json",
    ),
    "model": (
        "kb model export BAAI/bge-small-en-v1.5 ~/models/bge",
        "KB_MODEL_DIR=~/models/bge kb serve",
    ),
    "healthcheck": (
        "kb healthcheck",
        "kb healthcheck && echo alive",
    ),
}
EXAMPLES: Final = {name: "\n  ".join(("\b\nExamples:", *lines)) for name, lines in LINES.items()}
