"""Downloads a model's files from the model hub, or from a mirror that `HF_ENDPOINT` names.

A download that was interrupted goes on where it ended. A file must have the SHA-256 that is pinned for it; the first
fetch of a file without one pins what it got, which must be what the hub announced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.api.errors import ModelError
from kb.embed.artifact import TOKENIZER, WEIGHTS, sha256
from kb.embed.models.catalogue import Entry

if TYPE_CHECKING:
    from httpx2 import Client, Response

HUB: Final = "https://huggingface.co"
SECONDS: Final = 30
ATTEMPTS: Final = 8
PAUSE_SECONDS: Final = 0.5
"""The pause before the second attempt; the next ones are longer."""

NOT_FOUND: Final = 404
NOT_SATISFIABLE: Final = 416
PARTIAL: Final = 206
BROKEN_SERVER: Final = 500

REQUIRED: Final = ("config.json", "modules.json", TOKENIZER)
OPTIONAL: Final = ("config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer_config.json")
FOLDER: Final = re.compile(r"\w[\w-]*")
"""The form of a module's folder, which the hub names."""

DIGEST: Final = re.compile(r"[0-9a-f]{64}")
COPIES: Final = 2
"""The downloaded files are on the disk beside the converted model for a time."""

OnStep = Callable[[str], None]
"""Receives what is done at the moment, in words."""


class _Interrupted(Exception):
    """The reason why an attempt did not bring the whole file."""


class Download:
    """The files of a model, fetched into a folder.

    Args:
        client: the HTTP client.
        entry: the model.
        folder: receives the files.
        pins: the SHA-256 of files by repository, revision and name; the files that are fetched first are added.
    """

    def __init__(self, client: Client, entry: Entry, folder: Path, pins: dict[str, str], on_step: OnStep) -> None:
        self._client = client
        self._entry = entry
        self._folder = folder
        self._pins = pins
        self._on_step = on_step

    def run(self) -> None:
        """Fetch all files.

        Raises:
            ModelError: the hub does not answer or lacks a file, a file is not the pinned one, or the disk is too small.
        """
        for name in REQUIRED:
            self._fetch(name)
        for name in OPTIONAL:
            with suppress(FileNotFoundError):
                self._fetch(name)
        for name in self._of_modules():
            self._fetch(name)
        if self._entry.form == "onnx":
            self._fetch("onnx/model.onnx")
            with suppress(FileNotFoundError):
                self._fetch("onnx/model.onnx_data")
        else:
            self._fetch(WEIGHTS)

    def _of_modules(self) -> Iterator[str]:
        """Yield the files of the parts behind the encoder."""
        for part in json.loads((self._folder / "modules.json").read_bytes()):
            folder, kind = part["path"], part["type"].rpartition(".")[2]
            if folder and not FOLDER.fullmatch(folder):
                raise ModelError(f"The model {self._entry.repository} names the folder {folder!r}, which kb refuses.")
            if kind in ("Pooling", "Dense"):
                yield f"{folder}/config.json"
            if kind == "Dense":
                yield f"{folder}/{WEIGHTS}"

    def _fetch(self, name: str) -> None:
        """Fetch a file, in several attempts if the connection breaks.

        Raises:
            FileNotFoundError: the model has no such file, and may be without it.
        """
        path, pin = self._folder / name, self._pin(name)
        if path.is_file() and pin and sha256(path) == pin:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part, fault = path.with_name(f"{path.name}.part"), ""
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE_SECONDS * attempt)
            self._on_step(f"downloading {name}")
            was_begun = part.exists()
            try:
                announced = self._receive(name, part)
            except _Interrupted as error:
                fault = str(error)
                continue
            got = sha256(part)
            if got == (pin or announced or got):
                part.replace(path)
                self._pins[self._key(name)] = got
                return
            part.unlink()
            fault = f"its SHA-256 is {got}, and not {pin or announced}"
            if not was_begun:  # otherwise its beginning may be of something else
                break
        raise ModelError(f"kb cannot download {name} of {self._entry.repository} from {endpoint()}: {fault}.")

    def _receive(self, name: str, part: Path) -> str:
        """Receive the rest of a file; return the SHA-256 that the hub announced, if it did."""
        import httpx2

        begun = part.stat().st_size if part.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
        url = f"{endpoint()}/{self._entry.repository}/resolve/{self._entry.revision}/{name}"
        try:
            with self._client.stream("GET", url, headers=headers) as response:
                self._check(response, name)
                if response.status_code != NOT_SATISFIABLE:  # all of it was there
                    self._write(response, part, begun if response.status_code == PARTIAL else 0)
                return _announced(response)
        except httpx2.TransportError as error:
            raise _Interrupted(str(error) or type(error).__name__) from error

    def _check(self, response: Response, name: str) -> None:
        status = response.status_code
        if status == NOT_FOUND and name in (*OPTIONAL, "onnx/model.onnx_data"):
            raise FileNotFoundError
        if status >= BROKEN_SERVER:
            raise _Interrupted(f"it answered {status}")
        if status != NOT_SATISFIABLE and not response.is_success:
            raise ModelError(f"kb cannot download {name} of {self._entry.repository}: {endpoint()} answers {status}.")

    def _write(self, response: Response, part: Path, begun: int) -> None:
        rest = int(response.headers.get("Content-Length", 0))
        refuse_small_disk(self._folder, rest)
        done, total = begun, begun + rest
        with part.open("r+b" if begun else "wb") as file:
            file.seek(begun)
            for block in response.iter_bytes():
                file.write(block)
                done += len(block)
                if total >> 20:
                    self._on_step(f"downloading {part.stem}: {done >> 20} of {total >> 20} MB")

    def _pin(self, name: str) -> str | None:
        return self._entry.files.get(name) or self._pins.get(self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._entry.repository}@{self._entry.revision}/{name}"


def download(entry: Entry, folder: Path, pins: Path, on_step: OnStep) -> None:
    """Fetch the files of a model into a folder, which may have some of them. `pins` is the file of their digests.

    Raises:
        ModelError: see `Download.run`.
    """
    import httpx2  # slow to import (0.1 seconds)

    folder.mkdir(parents=True, exist_ok=True)
    refuse_small_disk(folder, COPIES * (entry.megabytes << 20))
    known: dict[str, str] = json.loads(pins.read_bytes()) if pins.exists() else {}
    with httpx2.Client(follow_redirects=True, timeout=SECONDS) as client:
        Download(client, entry, folder, known, on_step).run()
    pins.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def refuse_small_disk(folder: Path, size: int) -> None:
    """Raise `ModelError` if the disk of a folder has no room for so many bytes."""
    if (free := shutil.disk_usage(folder).free) < size:
        raise ModelError(f"The disk with {folder} has {free >> 20:,} MB free, but the model needs {size >> 20:,} MB.")


def endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def _announced(response: Response) -> str:
    """Return the SHA-256 that the hub announces before it sends the client to where the file is."""
    headers: list[Mapping[str, str]] = [each.headers for each in (*response.history, response)]
    tags = (each.get("x-linked-etag", "").strip('"') for each in headers)
    return next((tag for tag in tags if DIGEST.fullmatch(tag)), "")
