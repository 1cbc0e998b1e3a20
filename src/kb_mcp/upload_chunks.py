"""The chunks of an upload: files in its folder, named by index (requirements G-8, G-9)."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

import pybase64

from kb.api.errors import DiskFull, Invalid

MAX_CHUNK: Final = 3_000_000
"""Maximum size of a chunk in bytes: as base64 lines in JSON, it still fits the 4 MiB of an MCP request."""

MAX_CHUNKS: Final = 10_000
MAX_NAMED: Final = 5
"""Maximum number of missing chunks in an error."""


def decode(data: str, index: int, digest: str = "") -> bytes:
    """Return the bytes of a chunk.

    Raises:
        Invalid: `data` is not base64, is empty or too large, or has another SHA-256 than `digest`.
    """
    try:
        # Many tools break base64 into lines.
        raw = pybase64.b64decode("".join(data.split()) if "\n" in data else data, validate=True)
    except ValueError:
        raise Invalid(
            "data: not valid base64. Send it again in standard base64, padded with =, and nothing else."
        ) from None
    if not 0 < len(raw) <= MAX_CHUNK:
        raise Invalid(f"data: a part has 1 to {MAX_CHUNK} bytes. Use 1 MiB.")
    if digest:
        check_digest(sha256(raw).hexdigest(), digest, resend(index))
    return raw


def write(folder: Path, index: int, raw: bytes) -> None:
    """Write a chunk atomically, even if another process writes it at the same time.

    Raises:
        FileNotFoundError: the folder no longer exists.
        DiskFull: the disk is full.
    """
    path = folder / str(index)
    scratch = path.with_name(f"{path.name}.{uuid4()}")
    with explain_full_disk(resend(index)):
        try:
            scratch.write_bytes(raw)
            scratch.replace(path)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise


def sizes(folder: Path) -> dict[int, int]:
    try:
        with os.scandir(folder) as entries:
            return {int(entry.name): entry.stat().st_size for entry in entries if entry.name.isdecimal()}
    except FileNotFoundError:
        return {}


def assemble(folder: Path, total_size: int, digest: str = "") -> BinaryIO:
    """Return the whole file. Each chunk is removed after copying, so that the disk never holds the file twice.

    Raises:
        Invalid: a chunk is missing, the sizes do not add up, or the file has another SHA-256 than `digest`.
        DiskFull: the disk is full.
    """
    lengths = sizes(folder)
    check_complete(lengths, total_size)
    whole, *others = (folder / str(index) for index in sorted(lengths))
    with explain_full_disk("start again with kb_upload_start"), whole.open("ab") as file:
        for chunk in others:
            with chunk.open("rb") as source:
                shutil.copyfileobj(source, file, MAX_CHUNK)
            chunk.unlink()
    if digest:
        with whole.open("rb") as file:
            check_digest(file_digest(file, "sha256").hexdigest(), digest, "start again with kb_upload_start")
    return whole.open("rb")


def resend(index: int) -> str:
    return f"send chunk_index {index} again"


@contextmanager
def explain_full_disk(remedy: str) -> Iterator[None]:
    """Raise `DiskFull` with a remedy in place of the operating system's error."""
    try:
        yield
    except OSError as error:
        if not DiskFull.is_why(error):
            raise
        raise DiskFull(f"The gateway's disk is full. Ask the user to free space, then {remedy}.") from None


def check_digest(actual: str, expected: str, remedy: str) -> None:
    if actual != expected.strip().lower():
        raise Invalid(
            f"sha256: the received data has {actual}. Either it changed in transit or sha256 is wrong: {remedy}."
        )


def check_complete(lengths: Mapping[int, int], total_size: int) -> None:
    """Refuse to finish an incomplete upload.

    Raises:
        Invalid: a part is missing; the message names it.
    """
    size = sum(lengths.values())
    arrived = f"kb received {size} of {total_size} bytes"
    missing = sorted(set(range(max(lengths, default=0) + 1)) - lengths.keys())
    if missing:
        shown = ", ".join(map(str, missing[:MAX_NAMED]))
        raise Invalid(f"upload_id: {arrived}. Missing: chunk_index {shown}. Send it, then call kb_upload_finish again.")
    if size < total_size:
        following = max(lengths) + 1
        raise Invalid(
            f"upload_id: {arrived}. Send the rest, from byte {size} on, as chunk_index {following}, then call"
            " kb_upload_finish again; kb keeps the first part."
        )
    if size > total_size:
        raise Invalid(f"upload_id: {arrived}, more than total_size. Start again with kb_upload_start.")
