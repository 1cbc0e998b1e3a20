"""kb device: the device on which the engine runs its model, and its speed."""

from typing import Annotated

from kb_cli.runtime import output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import option

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
    embedder, _ = require("kb.maintenance.named_model").open_named_model(settings)
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
