"""kb model and kb device: models other than the default one, and the device that runs the model."""

from pathlib import Path
from typing import Annotated, Literal

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import argument, option


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
    exporter = require("kb.embed.models.export", "kb-local[export]")
    target = folder or settings.data_dir / "exported" / Path(name).name
    manifest = exporter.export(name, target.absolute()).manifest
    output.print_fields(
        {
            "model": f"{manifest.model}, {manifest.dimensions} dimensions, window {manifest.window}",
            "weights": manifest.digest,
            "use it": f"KB_MODEL_DIR={target.absolute()}",
        }
    )


SECONDS = 10


def device(
    seconds: Annotated[int, option("--seconds N", "How many seconds to measure.", min=0)] = SECONDS,
    json: Annotated[bool, option("--json", "Print only JSON.")] = False,
) -> None:
    """Show the device that runs the model, and measure its speed.

    This uses the same settings as 'kb serve': KB_DEVICE, KB_PRECISION, KB_MODEL_DIR and KB_DATA_DIR.
    """
    settings = data_settings()
    benchmark = require("kb.embed.benchmark")
    embedder, _ = require("kb.repair.named_model").open_named_model(settings)
    description = benchmark.describe(embedder)
    if json:
        output.print_json(description | benchmark.measure(embedder, seconds))
        return
    output.print_fields(
        {
            "device": "{device} ({provider}, ONNX Runtime {runtime}, {cores} cores)".format_map(description),
            "model": "{model}, {dimensions} dimensions, window {window}, {precision}".format_map(description),
            "weights": description["digest"],
            **{f"not {name}": fault for name, fault in description["not_used"].items()},
        }
    )
    speed = benchmark.measure(embedder, seconds)
    output.print_fields(
        {
            "passages of 200 tokens": f"{speed['chunks_per_second']:,.1f} per second",
            "notes of 20 tokens": f"{speed['notes_per_second']:,.1f} per second",
            "one query": f"{speed['query_ms']} ms",
        }
    )
