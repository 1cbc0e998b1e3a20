"""kb model: convert models other than the default one."""

from pathlib import Path
from typing import Annotated, Literal

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import EXTRAS, require
from kb_cli.runtime.options import argument


def model(
    action: Annotated[Literal["export"], argument("export", "The action.")],
    name: Annotated[str, argument("NAME", "The folder of a model, or its name on huggingface.co.")],
    folder: Annotated[
        Path | None, argument("FOLDER", "The folder to write, instead of exported/ in KB_DATA_DIR.")
    ] = None,
) -> None:
    """Convert a sentence-transformers model for the engine.

    This needs 'kb-local[export]', which installs torch. kb compares the result with the original. To use it, start the
    engine with KB_MODEL_DIR=FOLDER, then run 'kb reembed'. Until then, a database keeps its model.
    """
    settings = require("kb.settings").Settings.read()
    exporter = require("kb.embed.models.export", f"{EXTRAS},export")
    target = folder or settings.data_dir / "exported" / Path(name).name
    manifest = exporter.export(name, target.absolute()).manifest
    output.print_fields(
        {
            "model": f"{manifest.model}, {manifest.dimensions} dimensions, window {manifest.window}",
            "weights": manifest.digest,
            "use it": f"KB_MODEL_DIR={target.absolute()}",
        }
    )
