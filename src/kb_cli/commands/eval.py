"""kb eval."""

import json as json_
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from kb.client.client import EngineClient
from kb_cli.evaluation import MODES, PASSAGES, ask, drawn, mean, read_questions
from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, argument, option

MEASURES = {"ndcg": "nDCG@10", "recall": "recall@100", "mrr": "MRR@10"}
Run = dict[str, list[dict[str, Any]]]
"""The outcomes by mode, in their JSON form."""


def eval_(
    questions: Annotated[
        Path, argument("FILE", "A YAML file with questions, or a folder in BEIR format.", exists=True)
    ],
    compare: Annotated[
        Path | None, option("--compare JSON", "The output of an earlier run with --json.", exists=True, dir_okay=False)
    ] = None,
    plot: Annotated[Path | None, option("--plot SVG", "Write a chart of nDCG@10 to this file.")] = None,
    worst: Annotated[int, option("--worst N", "The number of worst questions to list.", min=0)] = 5,
    json: Json = False,
) -> int:
    """Measure search quality with questions and known answers.

    Each entry of the YAML list has a 'question' and its 'document' or 'documents', by ID, path, file name or title. It
    can also have a 'passage', words from the text that answers it, and 'tags'. In BEIR format, the IDs are the
    documents' paths, in queries.jsonl and qrels.tsv. --compare also prints the gain over an earlier run with other
    settings or another model.
    """
    asked = read_questions(questions)
    before = read_run(compare) if compare else None

    async def ask_all(client: EngineClient) -> Run:
        return {mode: [asdict(await ask(client, question, mode)) for question in asked] for mode in MODES}

    run = call(ask_all)
    if plot:
        plot.write_text(drawn(run, before), "utf-8")
    if json:
        output.print_json(run)
        return exit_codes.OK
    output.print_table(["", *MEASURES.values(), f"passage in {PASSAGES}"], table_rows(run))
    if before:
        print_gains(run, before)
    print_worst(run["both"], worst)
    return exit_codes.OK


def read_run(path: Path) -> Run:
    """Return an earlier run from its saved output."""
    try:
        run: Run = json_.loads(path.read_text("utf-8"))
        for outcomes in run.values():
            for outcome in outcomes:
                _ = outcome["text"], [outcome["measures"][name] for name in MEASURES]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise exit_codes.UsageError(
            f"{path} is not output from 'kb eval --json'. Create it with 'kb eval FILE --json > {path.name}'."
        ) from error
    return run


def table_rows(run: Run) -> list[list[str]]:
    rows = []
    for mode, outcomes in run.items():
        cells = [format_mean([outcome["measures"][name] for outcome in outcomes]) for name in MEASURES]
        answered = [outcome["has_passage"] for outcome in outcomes if outcome["has_passage"] is not None]
        rows.append([mode, *cells, f"{sum(answered)} of {len(answered)}" if answered else ""])
    return rows


def format_mean(values: Sequence[float]) -> str:
    average = mean(values)
    return f"{average.value:.3f} ({average.low:.3f} to {average.high:.3f})"


def print_gains(run: Run, before: Run) -> None:
    """Print the gain over an earlier run, for the questions that both runs contain, in any order."""
    rows = []
    for mode, outcomes in run.items():
        known = {outcome["text"]: outcome["measures"] for outcome in before.get(mode, [])}
        pairs = [(outcome["measures"], known[outcome["text"]]) for outcome in outcomes if outcome["text"] in known]
        if pairs:
            rows.append(
                [f"{mode}, gained", *(format_mean([new[name] - old[name] for new, old in pairs]) for name in MEASURES)]
            )
    output.write("\n")
    output.print_table(["", *MEASURES.values()], rows)


def print_worst(outcomes: Sequence[dict[str, Any]], limit: int) -> None:
    missed = sorted(
        (outcome for outcome in outcomes if outcome["measures"]["ndcg"] < 1),
        key=lambda outcome: outcome["measures"]["ndcg"],
    )
    if missed[:limit]:
        output.write("\n")
        rows = [
            [f"{outcome['measures']['ndcg']:.3f}", str(outcome["place"] or "-"), output.one_line(outcome["text"])]
            for outcome in missed[:limit]
        ]
        output.print_table(["nDCG@10", "place", "the worst questions"], rows)
