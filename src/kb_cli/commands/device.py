"""kb device: where the engine would run its model here, and how fast that is."""

from typing import Annotated

import typer

from kb_cli.runtime import output
from kb_cli.runtime.optional import engine

SECONDS = 10


def device(
    seconds: Annotated[int, typer.Option("--seconds", metavar="N", min=0, help="How long to measure.")] = SECONDS,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Show where the model runs on this machine, and measure how fast.

    It is what `kb serve` would take: KB_DEVICE, KB_PRECISION, KB_MODEL_DIR and KB_DATA_DIR count.
    """
    settings = engine("kb.settings").Settings.read()
    measuring = engine("kb.embed.benchmark")
    embedder = engine("kb.embed.open").open_embedder(
        settings.model_dir, settings.data_dir, settings.device, settings.precision
    )
    found = measuring.describe(embedder)
    if json:
        output.print_json(found | measuring.measure(embedder, seconds))
        return
    output.fields(
        {
            "device": "{device} ({provider}, ONNX Runtime {runtime}, {cores} cores)".format_map(found),
            "model": "{model}, {dimensions} dimensions, window {window}, {precision}".format_map(found),
            "weights": found["digest"],
            **{f"not {name}": fault for name, fault in found["not_used"].items()},
        }
    )
    measured = measuring.measure(embedder, seconds)
    output.fields(
        {
            "chunks of 200 tokens": f"{measured['chunks_per_second']:,.1f} a second",
            "notes of 20 tokens": f"{measured['notes_per_second']:,.1f} a second",
            "one query": f"{measured['query_ms']} ms",
        }
    )
