"""kb add: files and folders, a few at a time."""

import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.contract.errors import KbError
from kb_cli import exits, output
from kb_cli.files import files_at
from kb_cli.jobs import finished
from kb_cli.options import Json, Tags, Wait, split
from kb_cli.progress import progress
from kb_cli.run import ask, in_parallel

if TYPE_CHECKING:
    from kb.contract.client import EngineClient

AT_ONCE = 4


@dataclass(slots=True)
class Sent:
    """A file and what became of it: the engine's receipt or finished job, or the reason why not."""

    path: str
    job: dict[str, Any] | None = None
    error: str | None = None


def add(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS", help="Files, folders and patterns.")],
    tags: Tags = None,
    title: Annotated[str | None, typer.Option(help="Its title; only for a single file.")] = None,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Add files, and folders with all that is in them; hidden ones only if they are named.

    With --json, prints a list of {"path", "job", "error"}: job is the engine's receipt, or with --wait the
    finished job, and error says what went wrong.
    """
    files = files_at(paths)
    if title is not None and len(files) != 1:
        raise exits.UsageError(f"--title is for a single file, and these are {len(files)}.")
    fields = {"tags": split(tags), "title": title}
    sent = ask(partial(send_all, files=files, fields=fields, wait=wait, quiet=json))
    for each in sent:
        if each.error:
            output.complain(f"{each.path}: {each.error}")
    if json:
        output.print_json([asdict(each) for each in sent])
    else:
        output.say(summary(sent, wait))
    return exits.NOTHING if any(each.error for each in sent) else exits.OK


async def send_all(
    engine: "EngineClient", files: list[Path], fields: dict[str, Any], wait: bool, quiet: bool
) -> list[Sent]:
    """Send the files, and wait for their jobs if that is wanted."""
    sent = [Sent(str(file)) for file in files]
    with progress("sending", sum(map(size, files)), is_bytes=True, quiet=quiet) as advance:
        await in_parallel(lambda each: send(engine, each, fields, advance), sent, AT_ONCE)
    if wait:
        with progress("taking in", len(sent), is_bytes=False, quiet=quiet) as advance:
            for each in sent:
                await settle(engine, each)
                advance(1)
    return sent


async def send(engine: "EngineClient", each: Sent, fields: dict[str, Any], advance: Callable[[int], None]) -> None:
    """Send a file. What is wrong with this one alone is noted; what would stop the others too is raised."""
    try:
        with Upload(each.path, advance) as content:
            each.job = await engine.add_file(Path(each.path).name, content, source_path=each.path, **fields)
    except OSError as error:
        each.error = error.strerror or str(error)
    except UnicodeEncodeError:
        each.error = "its name is not UTF-8"
    except KbError as error:
        if exits.code_of(error) != exits.REFUSED:
            raise
        each.error = error.detail


async def settle(engine: "EngineClient", each: Sent) -> None:
    """Wait until the file's document can be found, or note why not."""
    if each.job:
        each.job = await finished(engine, each.job["job_id"])
        each.error = each.job["error"]


class Upload(io.FileIO):
    """A file that tells how much of it was read, and ends where it ended when it was opened.

    A log that grows while it is sent would otherwise become longer than what the request announced.
    """

    def __init__(self, path: str, advance: Callable[[int], None]) -> None:
        super().__init__(path)
        self._left = size(Path(path))
        self._advance = advance

    def read(self, size: int | None = -1, /) -> bytes:
        """Read on."""
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = super().read(wanted) or b""
        self._left -= len(data)
        self._advance(len(data))
        return data


def size(file: Path) -> int:
    """The file's length in bytes; 0 if it cannot be known."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def summary(sent: list[Sent], waited: bool) -> str:
    """What became of the files, in one line."""
    failed = sum(bool(each.error) for each in sent)
    done = f"{len(sent) - failed} {'searchable' if waited else 'on their way in'}"
    return f"{counted(len(sent))}: {done}" + (f", {failed} failed" if failed else "")


def counted(files: int) -> str:
    """A number of files."""
    return "1 file" if files == 1 else f"{files} files"
