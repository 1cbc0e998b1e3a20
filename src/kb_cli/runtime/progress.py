"""How far it is, for a person at a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kb_cli.runtime.output import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOMY: Final = 60
"""So many columns have room for numbers and a bar; numbers alone do with 40."""


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is going on while the block runs; none where it would not be seen."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("") as status:
        yield lambda words: status.update(Text(clean(words), overflow="ellipsis", no_wrap=True))


@contextmanager
def progress(label: str, total: int, *, is_bytes: bool, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while the block runs; the block tells it what it has done.

    There is none where it would not be seen or not be wanted.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    amount: rich.ProgressColumn = rich.DownloadColumn() if is_bytes else rich.MofNCompleteColumn()
    rate = [rich.TransferSpeedColumn()] if is_bytes else []
    console = Console(stderr=True)
    # Of colours only those that the terminal's own theme sets are fit for light and dark ones alike.
    plain_bar = rich.BarColumn(style="dim", complete_style="cyan", finished_style="cyan")
    bar_itself = [plain_bar] if console.width >= ROOMY else []
    columns = [rich.TextColumn("{task.description}"), *bar_itself, amount, *rate, rich.TimeRemainingColumn()]

    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)
