"""A recording of a terminal as an animated SVG: commands that are typed, each followed by its output."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from html import escape
from pathlib import Path

from tests.conftest import without_settings
from tests.support.eventually import SECONDS
from tests.support.pdf import pdf

COMMANDS = (
    "kb add ~/Documents --wait",
    'kb search "when does the lease end" --top 2',
    'kb addnote "Ms Weber wants the keys by noon." --title Handover --tags flat --wait',
    "kb search keys --tags flat --top 1",
    "kb mcp claude-code",
)
FILES = {
    "flat/lease.pdf": pdf(
        "Rental agreement for the flat in 12 Harbour Street.",
        "The tenancy begins on 1 April 2025 and ends on 31 March 2028.",
    ),
    "flat/heating.md": b"# Heating\n\nThe boiler is serviced every October.\n",
    "boat/moorings.txt": b"The harbour master renews the moorings on 9 May.\n",
}
COLUMNS, ROWS = 88, 12
TYPED_SECONDS, READ_SECONDS = 1.5, 4.5
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
LETTER, LINE, MARGIN, BAR = 8.43, 20, 18, 34
STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d7d7d7; white-space: pre }
.sign { fill: #7fbf7f } .step { opacity: 0 } .shown { opacity: 1 }
@media (prefers-reduced-motion: no-preference) {
  .step { animation: step %(all)ss linear infinite; animation-delay: var(--at); opacity: 0 }
  .typed { animation: typed %(all)ss steps(40) infinite; animation-delay: var(--at) }
  .answer { animation: answer %(all)ss linear infinite; animation-delay: var(--at) }
}
@keyframes step { 0%%, %(step).3f%% { opacity: 1 } %(after).3f%%, 100%% { opacity: 0 } }
@keyframes typed { 0%% { clip-path: inset(0 100%% 0 0) } %(typing).3f%%, 100%% { clip-path: inset(0 0 0 0) } }
@keyframes answer { 0%%, %(typing).3f%% { opacity: 0 } %(typed).3f%%, 100%% { opacity: 1 } }
"""


def record(url: str, home: Path) -> str:
    """Run the commands in a home folder against the server at `url`, and return the recording."""
    for name, content in FILES.items():
        file = home / "Documents" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    steps = [(command, shown(command, url, home)) for command in COMMANDS]
    return drawn(steps)


def shown(command: str, url: str, home: Path) -> list[str]:
    """Return the lines that a command prints in a terminal."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = without_settings() | {
        "HOME": str(home),
        "KB_ENGINE_URL": url,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with subprocess.Popen(
        ["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, cwd=home, env=environment
    ) as process:
        os.close(terminal)
        printed = b""
        while block := _read(main):
            printed += block
        assert process.wait(SECONDS) == 0, printed.decode()
    os.close(main)
    text = ESCAPES.sub("", printed.decode()).replace("\r\n", "\n")
    text = text.replace(str(home), "/home/you").replace(url, "http://127.0.0.1:8000")
    return [line.rpartition("\r")[2] for line in text.rstrip().split("\n")]


def _read(main: int) -> bytes:
    try:
        return os.read(main, 1 << 16)
    except OSError:  # Linux reports the end of a terminal in this way
        return b""


def drawn(steps: list[tuple[str, list[str]]]) -> str:
    """Return commands and their outputs as an SVG; without motion, it shows the first search."""
    each = TYPED_SECONDS + READ_SECONDS
    total = each * len(steps)
    share = {"step": 100 / len(steps) - 0.2, "typing": 100 * TYPED_SECONDS / total}
    style = STYLE % {"all": total, "after": share["step"] + 0.1, "typed": share["typing"] + 0.1, **share}
    width, height = round(COLUMNS * LETTER + 2 * MARGIN), BAR + ROWS * LINE + MARGIN
    lights = "".join(f'<circle cx="{18 + 18 * n}" cy="17" r="5.0" fill="#5a5a5a"/>' for n in range(3))
    groups = "\n".join(_step(number, *step, each) for number, step in enumerate(steps))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{style}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e1e1e"/>{lights}\n{groups}\n</svg>\n'
    )


def _step(number: int, command: str, lines: list[str], each: float) -> str:
    assert len(lines) < ROWS, f"{command}: {len(lines)} lines do not fit"
    answer = "\n".join(_text(line, row) for row, line in enumerate(lines, 1) if line)
    seen = " shown" if number == 1 else ""
    return (
        f'<g class="step{seen}" style="--at: {number * each:g}s">{_text("$", 0, 0, "sign")}'
        f'<g class="typed">{_text(command, 0, 2)}</g>\n<g class="answer">{answer}</g></g>'
    )


def _text(text: str, row: int, column: int = 0, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    place = f'x="{MARGIN + column * LETTER:g}" y="{BAR + (row + 1) * LINE - 5:g}"'
    return f'<text{named} {place} xml:space="preserve">{escape(text[:COLUMNS], quote=False)}</text>'
