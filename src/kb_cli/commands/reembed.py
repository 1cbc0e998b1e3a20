"""kb reembed."""

import time
from typing import Annotated, Any, Literal, get_args

from kb.api.errors import EngineUnreachable
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.config import load_config
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json, argument, option
from kb_cli.runtime.progress import status_line

Action = Literal["start", "status", "stop", "resume", "rollback", "finish"]
DONE = {
    None: "no other vectors exist",
    "building": "the engine is computing other vectors",
    "stopped": "stopped before all vectors were computed: 'kb reembed resume' continues",
    "returning": "the engine is switching back to the previous vectors",
    "kept": "the previous vectors are kept: 'kb reembed rollback' uses them again, 'kb reembed finish' deletes them",
}
AT_WORK = ("building", "returning")
PAUSE_SECONDS = 1.0


def reembed(
    action: Annotated[Action, argument("|".join(get_args(Action)), "What to do (see above).")] = "start",
    wait: Annotated[bool, option("--wait", "Wait until all vectors are computed.")] = False,
    json: Json = False,
) -> int:
    """Recompute all vectors, for example with another model.

    The model, its precision and its prefixes come from the engine's settings. The engine works in the background, and
    searches use the old vectors until all new ones exist. kb keeps the old vectors until 'kb reembed finish'. 'kb
    reembed rollback' switches back to them or, while the engine is still computing, discards the new ones. 'stop'
    pauses the work, 'resume' continues it, and 'status' shows the progress. An engine that was killed carries on when
    it starts again. If no engine is running, this command does all the work itself, in KB_DATA_DIR.
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
    with status_line(quiet=False) as show_status:
        while (answer["step"] or answer["state"] in AT_WORK) and not answer["error"]:
            show_status(answer["step"] or f"{answer['done']:,} of {answer['total']:,} vectors")
            time.sleep(PAUSE_SECONDS)
            answer = call(lambda client: client.reembedding())
    return answer


def reembed_here(action: Action, model: str | None = None) -> dict[str, Any]:
    """Run the action without an engine; return the answer that an engine would give."""
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        progress = require("kb.repair.reembed").reembed(
            settings,
            None if action == "status" else action,
            lambda done, total: show_status(f"{done:,} of {total:,} vectors"),
            model,
        )
    answer: dict[str, Any] = progress.model_dump()
    return answer


def report(answer: dict[str, Any], json: bool) -> int:
    if json:
        output.print_json(answer)
    else:
        is_other = answer["wanted"] != answer["in_use"]
        is_partial = answer["state"] in (*AT_WORK, "stopped")
        output.print_fields(
            {
                "in use": answer["in_use"],
                "settings": f"{answer['wanted']}: 'kb reembed' computes its vectors" if is_other else None,
                "other": answer["other"],
                "state": DONE[answer["state"]],
                "computed": f"{answer['done']:,} of {answer['total']:,}" if is_partial else None,
                "installing": answer["step"],
                "error": answer["error"],
            }
        )
    return exit_codes.FAILURE if answer["error"] else exit_codes.OK
