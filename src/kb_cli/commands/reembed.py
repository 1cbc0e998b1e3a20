"""kb reembed."""

import time
from typing import Annotated, Any, Literal, get_args

import typer

from kb.api.errors import EngineUnreachable
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.config import load_config
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json
from kb_cli.runtime.progress import status_line

Action = Literal["start", "status", "stop", "resume", "rollback", "finish"]
DONE = {
    None: "there are no other vectors",
    "building": "others are being made",
    "stopped": "others were being made, which is stopped: 'kb reembed resume' goes on",
    "returning": "the former ones are about to be in use again",
    "kept": "the former ones are kept: 'kb reembed rollback' brings them back, 'kb reembed finish' deletes them",
}
AT_WORK = ("building", "returning")
PAUSE_SECONDS = 1.0


def reembed(
    action: Annotated[Action, typer.Argument(metavar="|".join(get_args(Action)), help="What to do.")] = "start",
    wait: Annotated[bool, typer.Option("--wait", help="Return when all vectors are made.")] = False,
    json: Json = False,
) -> int:
    """Make every vector anew, for instance with another model.

    The engine's settings name the model, its precision and prefixes. The engine does the work in the background, and
    searches use the old vectors until all new ones are there. The old ones are kept until 'kb reembed finish'; 'kb
    reembed rollback' brings them back or, before that, discards the new ones. 'stop' and 'resume' do what they say, and
    an engine that was killed continues by itself. Where no engine runs, all is done at once, in KB_DATA_DIR.
    """
    try:
        answer = call(lambda client: client.reembedding() if action == "status" else client.reembed(action))
        if wait:
            answer = awaited(answer)
    except EngineUnreachable:
        if load_config().settings["engine_url"].source != "default":
            raise
        answer = reembed_here(action)
    return report(answer, json)


def awaited(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what the engine answers when it is done, or cannot go on."""
    with status_line(quiet=False) as show_status:
        while answer["state"] in AT_WORK and not answer["error"]:
            show_status(f"{answer['done']:,} of {answer['total']:,} vectors")
            time.sleep(PAUSE_SECONDS)
            answer = call(lambda client: client.reembedding())
    return answer


def reembed_here(action: Action) -> dict[str, Any]:
    """Do it without an engine; return what one would answer."""
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        progress = require("kb.maintenance.reembed").reembed(
            settings,
            None if action == "status" else action,
            lambda done, total: show_status(f"{done:,} of {total:,} vectors"),
        )
    answer: dict[str, Any] = progress.model_dump()
    return answer


def report(answer: dict[str, Any], json: bool) -> int:
    """Print how far it is; return the exit code."""
    if json:
        output.print_json(answer)
    else:
        is_other = answer["wanted"] != answer["in_use"]
        is_partial = answer["state"] in (*AT_WORK, "stopped")
        output.print_fields(
            {
                "in use": answer["in_use"],
                "settings": f"{answer['wanted']}: 'kb reembed' makes its vectors" if is_other else None,
                "other": answer["other"],
                "state": DONE[answer["state"]],
                "made": f"{answer['done']:,} of {answer['total']:,}" if is_partial else None,
                "error": answer["error"],
            }
        )
    return exit_codes.FAILURE if answer["error"] else exit_codes.OK
