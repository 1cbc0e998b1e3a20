"""kb model and kb device: models other than the default one, and the device that runs the model."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import typer

from kb.api.errors import EngineUnreachable, Invalid, ModelError
from kb_cli.commands.reembed import awaited, reembed, reembed_here, report
from kb_cli.evaluation import NDCG_DEPTH, Measures, Question, mean, read_documents, read_questions
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.config import load_config
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json, argument, option

MINUTE, HOUR = 60, 3600


T = TypeVar("T")
TARGET = "The file or folder to write, for 'pack' and 'export', or the folder to read, for 'measure'."
Action = Literal["list", "use", "rollback", "finish", "measure", "pack", "export"]


def model(
    action: Annotated[Action, argument("|".join(get_args(Action)), "What to do (see above).")] = "list",
    name: Annotated[str | None, argument("NAME|DIR|FILE", "The model.")] = None,
    target: Annotated[Path | None, argument("TARGET", TARGET)] = None,
    yes: Annotated[bool, option("--yes -y", "Do not ask for confirmation (required in scripts).")] = False,
    wait: Annotated[bool, option("--wait", "Wait until all vectors are computed.")] = False,
    json: Json = False,
) -> int:
    """List the embedding models, or switch to another.

    'use' fetches a model from the list, or any other from the model hub as OWNER/NAME; HF_ENDPOINT can name a mirror.
    It also takes a sentence-transformers folder, or a file that 'pack' wrote on another machine. The engine then
    recomputes all vectors; searches use the old ones until it is done. 'rollback' returns to the old model, until
    'finish' deletes its vectors. 'kb reembed status' shows the progress. 'measure' reads documents and
    questions in BEIR format, and saves how to read this model's similarity scores, and whether it can run in int8.
    'export' converts a model that 'use' cannot take; it needs 'kb-local[export]', which installs torch.
    """
    match action:
        case "list":
            return show_models(json)
        case "use":
            return use(needed(name, "the model"), yes=yes, wait=wait, json=json)
        case "rollback" | "finish":
            return reembed(action, wait=wait, json=json)
        case "measure":
            return measure(needed(name, "the model"), needed(target, "the folder"))
        case "pack":
            return pack(needed(name, "the model"), target)
        case "export":
            return export(needed(name, "the model"), target)


def needed(value: T | None, what: str) -> T:
    if value is None:
        raise Invalid(f"Name {what}.")
    return value


def listed() -> dict[str, Any]:
    """Return the models, from the engine or, if none runs here, from KB_DATA_DIR."""
    try:
        answer: dict[str, Any] = call(lambda client: client.models())
    except EngineUnreachable:
        if load_config().settings["engine_url"].source != "default":
            raise
        answer = require("kb.repair.reembed").models(data_settings()).model_dump()
    return answer


def show_models(json: bool) -> int:
    answer = listed()
    if json:
        output.print_json(answer)
        return exit_codes.OK
    for each in answer["models"]:
        state = "in use" if each["is_in_use"] else "installed" if each["is_installed"] else f"{each['megabytes']} MB"
        facts = [
            state,
            each["languages"],
            f"{each['dimensions']} dimensions",
            each["licence"],
            each["quality"],
            speed_of(each),
            f"all vectors {duration(each['seconds'])}" if each["seconds"] and not each["is_in_use"] else "",
        ]
        output.print_line(f"{each['name']}: {', '.join(filter(None, facts))}")
    return exit_codes.OK


def speed_of(each: Mapping[str, Any]) -> str:
    if not each["passages_per_second"]:
        return ""
    return f"{'' if each['is_in_use'] else 'about '}{each['passages_per_second']:,.0f} passages/s on this machine"


def duration(seconds: float) -> str:
    if seconds < MINUTE:
        return "in less than a minute"
    if seconds < HOUR:
        return f"in about {seconds / MINUTE:.0f} min"
    return f"in about {seconds / HOUR:.1f} h"


def with_whole_path(name: str) -> str:
    """Return the whole path of a model's file or folder, since the engine has another one; other names stay."""
    path = Path(name).expanduser()
    return str(path.absolute()) if path.exists() else name


def use(name: str, *, yes: bool, wait: bool, json: bool) -> int:
    """Use another model, after showing what that takes."""
    wanted = with_whole_path(name)
    if not yes:
        confirm(name)
    try:
        answer = call(lambda client: client.reembed("start", wanted))
        answer = awaited(answer) if wait else answer
    except EngineUnreachable:
        if load_config().settings["engine_url"].source != "default":
            raise
        answer = reembed_here("start", wanted)
    return report(answer, json)


def confirm(name: str) -> None:
    """Show the size of a model and the time that its vectors take, and ask."""
    if not sys.stdin.isatty():
        raise exit_codes.UsageError("Cannot ask for confirmation without a terminal. Add --yes to use the model.")
    answer = listed()
    known = next((each for each in answer["models"] if each["name"] == name), None)
    output.print_line(
        f"kb will compute the vectors of {answer['passages']:,} passages with {name}; searches keep working."
    )
    if known and not known["is_installed"]:
        output.print_line(f"kb will download {known['megabytes']:,} MB first ({known['licence']}).")
    if known and known["seconds"]:
        output.print_line(f"All vectors will be ready {duration(known['seconds'])}, if kb is otherwise idle.")
    if not typer.confirm("Continue?"):
        raise typer.Abort


LOST = 0.005
"""The most nDCG@10 that int8 may cost."""


def measure(name: str, folder: Path) -> int:
    """Measure a model in fp32 and in int8; keep with it what follows."""
    questions, documents = read_questions(folder), read_documents(folder)
    model = require("kb.repair.measure_model").MeasuredModel(with_whole_path(name), data_settings(), documents)
    ndcg: dict[str, float] = {}
    for precision in ("fp32", "int8"):
        try:
            ranking = model.rank(precision, [question.text for question in questions], NDCG_DEPTH)
        except ModelError as error:
            if not ndcg:
                raise
            output.print_line(error.detail)
            break
        ndcg[precision] = mean([ndcg_of(*each) for each in zip(questions, ranking.keys, strict=True)]).value
        output.print_line(f"{precision}: nDCG@10 {ndcg[precision]:.4f}, {ranking.pace:.1f} passages per CPU second")
    if "int8" not in ndcg:
        output.print_line("int8 could not be measured, so kb saved no result.")
        return exit_codes.FAILURE
    suits_int8 = ndcg["int8"] >= ndcg["fp32"] - LOST
    if not model.is_default:
        model.keep(suits_int8=suits_int8)
    output.print_line(f"int8 {'suits' if suits_int8 else 'does not suit'} this model.")
    return exit_codes.OK


def ndcg_of(question: Question, keys: Sequence[str]) -> float:
    return Measures.of([question.wanted.get(key, 0) for key in keys], list(question.wanted.values())).ndcg


def pack(name: str, target: Path | None) -> int:
    installer, settings = require("kb.embed.models.install"), data_settings()
    files = installer.install(with_whole_path(name), settings.data_dir)
    file = target or Path(f"{files.manifest.model}.kbmodel")
    installer.pack(files, file)
    output.print_line(f"{file}: on the other machine, run 'kb model use {file.name}'")
    return exit_codes.OK


def export(name: str, folder: Path | None) -> int:
    """Convert a model with torch, and compare it with the original."""
    settings = require("kb.settings").Settings.read()
    exporter = require("kb.embed.models.export", "kb-local[export]")
    target = folder or settings.data_dir / "exported" / Path(name).name
    manifest = exporter.export(name, target.absolute()).manifest
    output.print_fields(
        {
            "model": f"{manifest.model}, {manifest.dimensions} dimensions, window {manifest.window}",
            "weights": manifest.digest,
            "use it": f"kb model use {target.absolute()}",
        }
    )
    return exit_codes.OK


SECONDS = 10


def device(
    seconds: Annotated[int, option("--seconds N", "How long to measure, in seconds.", min=0)] = SECONDS,
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
