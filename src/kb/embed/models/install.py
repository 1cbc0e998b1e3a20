"""Puts models into `models/` of the data folder: from the hub, from a folder, or from a file that kb packed."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from filelock import FileLock

from kb.api.errors import ModelError
from kb.embed.artifact import (
    DATA,
    FP32,
    MANIFEST,
    ONNX,
    TOKENIZER,
    InvalidArtifact,
    ModelFiles,
    ModelManifest,
    load_model,
    write_manifest,
)
from kb.embed.models import sentence_transformer
from kb.embed.models.catalogue import Entry, catalogue
from kb.embed.models.hub import HUB, OnStep, download, refuse_small_disk
from kb.embed.models.likeness import measure
from kb.embed.models.prepare import find_model, inside, scratch_folder
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.filesystem import sync

PARTS: Final = (MANIFEST, ONNX, DATA, TOKENIZER)
"""The files of a model, and of a packed one."""

REPOSITORY: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def install(wanted: str, data_dir: Path, on_step: OnStep = lambda _: None, model_dir: Path | None = None) -> ModelFiles:
    """Return a model, after fetching and converting it if necessary.

    Args:
        wanted: a name of the catalogue, a model of the hub as `owner/name`, a folder, or a packed file.
        data_dir: receives the model.
        on_step: see `OnStep`.
        model_dir: the folder of a model that need not be fetched, as in an image.

    Raises:
        ModelError: nothing is known by this name, or it cannot be fetched, read or converted.
    """
    home, path, entry = data_dir / "models", Path(wanted), check_known(wanted, data_dir)
    if path.is_file():
        return _unpack(path, home)
    if entry is None:
        return _from_folder(path, home, on_step)
    if model_dir and (files := find_model(model_dir, data_dir)).manifest.model == entry.name:
        return files
    if entry.is_default:
        return find_model(None, data_dir)
    known = next((files for name, files in installed(home) if name == entry.name), None)
    return known or _from_hub(entry, home, on_step)


def check_known(wanted: str, data_dir: Path) -> Entry | None:
    """Return the model that is meant, which may be installed; None for a folder or a file.

    Raises:
        ModelError: it is none of these.
    """
    path = Path(wanted)
    if path.is_absolute() and path.exists():
        return None
    here = any(name == wanted for name, _ in installed(data_dir / "models"))
    named = wanted.removeprefix(f"{HUB}/").removesuffix("/")
    known = (each for each in catalogue().values() if named.lower() in (each.name.lower(), each.repository.lower()))
    is_named = here or REPOSITORY.fullmatch(named)
    entry = next(known, None) or (Entry(Path(named).name, named) if is_named else None)
    if entry is None:
        raise ModelError(f"kb does not know {wanted!r}, and no such folder or file exists. See 'kb model list'.")
    return entry


def installed(home: Path) -> Iterator[tuple[str, ModelFiles]]:
    """Yield the models in `models/` by name, unverified."""
    for manifest in sorted(home.glob(f"*/{MANIFEST}")):
        with suppress(OSError, ValueError, TypeError):
            recorded = json.loads(manifest.read_bytes())
            recorded.pop("files")
            folder, made = manifest.parent, ModelManifest(**recorded)
            if made.precision == FP32:
                yield made.model, ModelFiles(folder / ONNX, folder / TOKENIZER, made, FP32)


def pack(files: ModelFiles, target: Path) -> None:
    """Write a model into one file, for a machine that reaches no hub.

    Raises:
        ModelError: the file exists or cannot be written.
    """
    try:
        with tarfile.open(target, "x") as archive:
            for name in PARTS:
                archive.add(files.onnx.with_name(name), name, recursive=False)
    except OSError as error:
        raise ModelError(f"kb cannot write {target}: {error.strerror or error}.") from error


def _unpack(file: Path, home: Path) -> ModelFiles:
    with scratch_folder(home) as scratch:
        unpacked = scratch / "model"
        unpacked.mkdir()
        try:
            with tarfile.open(file) as archive:
                members = [archive.getmember(name) for name in PARTS]
                refuse_small_disk(scratch, sum(member.size for member in members))
                archive.extractall(unpacked, members, filter="data")
        except (tarfile.TarError, KeyError, OSError) as error:
            raise ModelError(f"{file} was not created by 'kb model pack': {error}.") from error
        return _keep(_verified(unpacked), home)


def _from_folder(folder: Path, home: Path, on_step: OnStep) -> ModelFiles:
    with scratch_folder(home) as scratch:
        if (folder / MANIFEST).is_file():
            copied = scratch / "model"
            copied.mkdir()
            for name in PARTS:
                with suppress(FileNotFoundError):
                    shutil.copyfile(folder / name, copied / name)
            return _keep(_verified(copied, folder), home)
        on_step("converting")
        return _keep(_convert(folder, scratch / "model", folder.resolve().name), home)


def _from_hub(entry: Entry, home: Path, on_step: OnStep) -> ModelFiles:
    raw = home / ".downloads" / entry.name
    raw.mkdir(parents=True, exist_ok=True)
    with FileLock(raw / ".lock"):
        download(entry, raw, home / "pins.json", on_step)
        on_step("converting")
        with scratch_folder(home) as scratch:
            files = _convert(raw, scratch / "model", entry.name)
            kept = _keep(_with_prefixes(files, entry), home)
    shutil.rmtree(raw, ignore_errors=True)
    return kept


def _convert(folder: Path, target: Path, name: str) -> ModelFiles:
    if not sentence_transformer.is_model(folder):
        raise ModelError(f"{folder} contains neither a converted model nor one of sentence-transformers.")
    return sentence_transformer.convert(folder, target, name)


def _with_prefixes(files: ModelFiles, entry: Entry) -> ModelFiles:
    """Return a model that reads the catalogue's prefixes, if its own files name none."""
    manifest = files.manifest
    if manifest.query_prefix or manifest.passage_prefix:
        return files
    manifest = replace(manifest, query_prefix=entry.query_prefix, passage_prefix=entry.passage_prefix)
    write_manifest(files.onnx.parent, manifest)
    return replace(files, manifest=manifest)


def _verified(folder: Path, where: Path | None = None) -> ModelFiles:
    try:
        return load_model(folder)
    except InvalidArtifact as fault:
        raise ModelError(f"kb cannot use the model{f' in {where}' if where else ''}: {fault}.") from None


def _keep(files: ModelFiles, home: Path) -> ModelFiles:
    """Move a model from the scratch folder to its place, unless it is there already, and measure its cosines before."""
    place = inside(home, f"{files.manifest.model}-{files.manifest.digest[:12]}")
    with suppress(InvalidArtifact):
        return load_model(place)
    if not files.manifest.likeness:
        write_manifest(files.onnx.parent, replace(files.manifest, likeness=measure(OnnxEmbedder(files, "cpu"))))
    shutil.rmtree(place, ignore_errors=True)
    files.onnx.parent.replace(place)
    sync(home)
    return load_model(place)
