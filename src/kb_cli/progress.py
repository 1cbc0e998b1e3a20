"""How far it is, for a person at a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kb_cli.output import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
    columns = [rich.TextColumn("{task.description}"), rich.BarColumn(), amount, *rate, rich.TimeRemainingColumn()]

    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)
