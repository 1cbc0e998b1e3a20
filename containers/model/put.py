"""Put the model of an image into a folder: the one that is named, in int8 too if that suits it.

    python put.py [NAME|OWNER/NAME|FILE] FOLDER

FILE is a model that `kb model pack` wrote. Without a name, it is the default model.
"""

import sys
from pathlib import Path

from kb.embed.artifact import INT8, WEIGHTS
from kb.embed.models.fetch import SOURCES
from kb.embed.models.install import install
from kb.embed.models.prepare import in_precision, prepare


def put(wanted: str, folder: Path) -> None:
    made = folder.with_name("made")
    given = Path(wanted).absolute()
    files = install(str(given) if given.is_file() else wanted, made, print) if wanted else prepare(None, made)
    if files.manifest.digest == SOURCES[WEIGHTS] or files.manifest.suits_int8:
        rounded = in_precision(files, made / "models", INT8)
        rounded.onnx.parent.rename(files.onnx.parent / INT8)
    files.onnx.parent.rename(folder)
    for path in (folder, *folder.rglob("*")):  # whoever packed it may have kept it private
        path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    put(sys.argv[1], Path(sys.argv[2]))
