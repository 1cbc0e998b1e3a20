"""Measure another model beside the default one in English collections: nDCG@10 and recall@100, in fp32 and in int8.

    python -m bench.models FOLDER [--part N] [--vectors FOLDER] [COLLECTION...]      default: cranfield locomo_turns

FOLDER is a model that kb converted. Each line is the difference to the default model, with the 95% interval of a paired
bootstrap; the last one of a collection is what int8 costs the other model. `--part N` asks each Nth question, of the
documents that answer it and each Nth of the others. Fail if int8 loses more nDCG than kb accepts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.collection import Collection, collection
from bench.precisions import Remembering, Scores, asked, fill
from kb.embed.models.prepare import prepare
from kb.embed.onnx.embedder import OnnxEmbedder
from kb_cli.commands.model import LOST
from kb_cli.evaluation import mean

if TYPE_CHECKING:
    from collections.abc import Mapping


def thinned(whole: Collection, part: int) -> Collection:
    """Return each Nth question, the documents that answer these, and each Nth of the other documents."""
    judgements = dict(list(whole.judgements.items())[::part])
    answers = {key for grades in judgements.values() for key in grades}
    documents = {
        key: text for number, (key, text) in enumerate(whole.documents.items()) if key in answers or not number % part
    }
    return replace(whole, documents=documents, judgements=judgements)


def compare(wanted: Collection, models: Mapping[str, Remembering]) -> float:
    """Print a line for each model; return the nDCG@10 that int8 costs the last one."""
    print(f"{wanted.name}: {len(wanted.documents)} documents, {len(wanted.questions)} questions", flush=True)
    found: dict[str, Scores] = {}
    with tempfile.TemporaryDirectory() as folder:
        for label, model in models.items():
            begun = time.process_time()
            with closing(fill(Path(folder, f"{label}.db"), wanted, [model])) as store:
                found[label] = asked(store, model, wanted.questions)
            model.keep()
            line, _ = found[label].report(label, next(iter(found.values())))
            print(f"{line}; {time.process_time() - begun:.0f} CPU s", flush=True)
    full, rounded = list(found.values())[-2:]
    print(rounded.report("int8 to fp32", full)[0], flush=True)
    return mean([one.ndcg - other.ndcg for one, other in zip(full.measures, rounded.measures, strict=True)]).value


def opened(model: Path | None, scratch: Path, precision: str) -> Remembering:
    embedder = OnnxEmbedder(prepare(model, scratch, precision), "cpu", threads=1)
    return Remembering(embedder, scratch / f"{embedder.spec.name}-{precision}.npz")


def main() -> int:
    """Compare the models in each collection; 1 if int8 costs too much."""
    parser = argparse.ArgumentParser(description="Measure a model beside the default one.")
    parser.add_argument("model", type=Path)
    parser.add_argument("collections", nargs="*", default=["cranfield", "locomo_turns"])
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--vectors", type=Path, help="a folder that keeps the vectors and the models")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.vectors or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        models = [opened(None, scratch, "int8")] + [opened(options.model, scratch, each) for each in ("fp32", "int8")]
        by_label = {f"{each.spec.name} {each.spec.precision}": each for each in models}
        lost = [compare(thinned(collection(name), options.part), by_label) for name in options.collections]
    return int(max(lost) > LOST)


if __name__ == "__main__":
    sys.exit(main())
