"""Show progress on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kb_cli.runtime.output import to_printable

MIN_BAR_COLUMNS: Final = 60
"""Minimum width for numbers and a bar; numbers only need 40 columns."""


@contextmanager
def status_line(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a status line on standard error during the block, which sets its text; show nothing without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(Text(to_printable(text), overflow="ellipsis", no_wrap=True))


@contextmanager
def progress_bar(label: str, total: int, *, is_bytes: bool, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error during the block, which advances it; show nothing without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    amount: rich.ProgressColumn = rich.DownloadColumn() if is_bytes else rich.MofNCompleteColumn()
    rate = [rich.TransferSpeedColumn()] if is_bytes else []
    console = Console(stderr=True)
    # Only colours from the terminal's theme suit light and dark backgrounds alike.
    bar_column = rich.BarColumn(style="dim", complete_style="cyan", finished_style="cyan")
    bars = [bar_column] if console.width >= MIN_BAR_COLUMNS else []
    columns = [rich.TextColumn("{task.description}"), *bars, amount, *rate, rich.TimeRemainingColumn()]

    with rich.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.advance(task, done)
