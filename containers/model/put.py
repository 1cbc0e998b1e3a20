"""Put the model of an image into a folder: the one that is named, in int8 too if that suits it.

    python put.py [NAME|OWNER/NAME|FILE] FOLDER

FILE is a model that `kb model pack` wrote. Without a name, it is the default model.
"""

import sys
from pathlib import Path

from kb.embed.artifact import INT8, NAME
from kb.embed.models.install import install
from kb.embed.models.prepare import in_precision, prepare


def put(wanted: str, folder: Path) -> None:
    made = folder.with_name("made")
    is_default = wanted in ("", NAME)
    given = Path(wanted).absolute()
    files = prepare(None, made) if is_default else install(str(given) if given.is_file() else wanted, made, print)
    if is_default or files.manifest.suits_int8:
        rounded = in_precision(files, made / "models", INT8)
        rounded.onnx.parent.rename(files.onnx.parent / INT8)
    files.onnx.parent.rename(folder)
    for path in (folder, *folder.rglob("*")):  # whoever packed it may have kept it private
        path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    put(sys.argv[1], Path(sys.argv[2]))
