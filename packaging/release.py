"""Make the files of a release: `python packaging/release.py FOLDER ADDRESS [IMAGES]`.

ADDRESS is the folder on the web that will hold them, and IMAGES the place of the images: `registry.example.org/kb`.

Two runs from one commit give the same bytes: every date in an archive is the one of the commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import yaml

from kb import __version__

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "packaging"))

import bundle  # noqa: E402 - a script next to this one

FORMULA: Final = """\
class Kb < Formula
  desc "{about}"
  homepage "{address}"
  url "{address}/{source}"
  sha256 "{digest}"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--require-hashes", "-r", "requirements/runtime.txt"
    system libexec/"bin/python", "-m", "pip", "install", "--no-deps", "."
    bin.install_symlink libexec/"bin/kb"
  end

  service do
    run [opt_bin/"kb", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/kb --version")
  end
end
"""


HEAD: Final = """\
# kb without a clone. Load or pull the two images, put a KB_API_KEY and a KB_MCP_API_KEY of your choice into a file .env
# beside this one, and run: docker compose up -d
"""


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def notes() -> str:
    """Return the section of this version in CHANGELOG.md, without its heading."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(__version__)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise SystemExit(f"CHANGELOG.md has no section for {__version__}. Write one, then run this again.")
    return found[1].strip() + "\n"


def formula(source: Path, address: str) -> str:
    """Return the Homebrew formula that installs the source distribution."""
    return FORMULA.format(about=bundle.ABOUT, address=address, source=source.name, digest=digest(source))


def compose(images: str = "") -> str:
    """Return the stack for people without a clone: the same services, from images that are only loaded or pulled."""
    stack = yaml.safe_load((ROOT / "compose/compose.yaml").read_text())
    for service in stack["services"].values():
        service.pop("build")
        service["image"] = f"{images}/{service['image']}".lstrip("/")
    stack = {name: part for name, part in stack.items() if not name.startswith("x-")}
    return HEAD + str(yaml.safe_dump(stack, sort_keys=False, width=120))


def build(folder: Path, address: str, images: str) -> None:
    """Write all files of the release and SHA256SUMS into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    [source] = folder.glob("*.tar.gz")
    bundle.build(folder, f"{address}/kb.mcpb")
    (folder / "kb.rb").write_text(formula(source, address))
    (folder / "compose.yaml").write_text(compose(images))
    shutil.copy(ROOT / "requirements/runtime.txt", folder / "requirements.txt")
    for file in sorted((ROOT / "build/sbom").glob("*.json")):
        shutil.copy(file, folder / f"sbom-{file.name}")
    (folder / "NOTES.md").write_text(notes())
    files = sorted(file for file in folder.iterdir() if file.name != ".gitignore")
    (folder / "SHA256SUMS").write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve(), sys.argv[2].rstrip("/"), "".join(sys.argv[3:]).rstrip("/"))
