"""Questions whose answers are known say how well searches find them."""

from __future__ import annotations

import json
import random

import pytest
import pytrec_eval

from kb_cli.evaluation import Measures, mean

QUESTIONS = """
- question: where do the otters {tag} sleep
  document: otters-{tag}.md
  passage: sleep in   the reeds
  tags: [{tag}]
- question: which boat {tag} is the oldest
  documents: [{title}]
- question: what nobody wrote {tag}
  document: nowhere.md
"""


@pytest.fixture
def questions(kb, folder, tag):
    kb.note(f"Otters {tag} sleep in the reeds.", "--tags", tag, "--source-path", f"/notes/otters-{tag}.md")
    kb.note(f"The oldest boat {tag} is the Ada.", "--tags", tag, "--title", f"Boats {tag}")
    path = folder / "questions.yaml"
    path.write_text(QUESTIONS.format(tag=tag, title=f"Boats {tag}"))
    return path


def test_each_mode_is_scored_and_the_worst_questions_are_listed(kb, questions, tag):
    shown = kb("eval", str(questions)).stdout
    assert [line.split()[0] for line in shown.splitlines()[:3]] == ["both", "words", "meaning"]
    assert "0.667 (0.000 to 1.000)" in shown
    assert "1 of 1" in shown
    assert shown.splitlines()[-1].split() == ["0.000", "-", "what", "nobody", "wrote", tag]


def test_a_run_is_compared_with_an_earlier_one_and_drawn(kb, questions, folder):
    before = folder / "before.json"
    run = json.loads(kb("eval", str(questions), "--json").stdout)
    run["both"][0]["measures"]["ndcg"] = 0.7
    for outcomes in run.values():
        for outcome in outcomes:
            outcome["question"] += "0"  # it stood elsewhere in the file then
    before.write_text(json.dumps(run))
    shown = kb("eval", str(questions), "--compare", str(before), "--plot", str(folder / "plot.svg")).stdout
    gains = [line.split() for line in shown.splitlines() if "gained" in line]
    assert [gain[:3] for gain in gains[:2]] == [["both,", "gained", "0.100"], ["words,", "gained", "0.000"]]
    drawn = (folder / "plot.svg").read_text()
    assert drawn.count("<rect") == 6
    assert ">0.667<" in drawn


def test_a_folder_in_beirs_form_names_documents_by_their_paths(kb, questions, folder, tag):
    beir = folder / "beir"
    beir.mkdir()
    beir.joinpath("queries.jsonl").write_text(
        json.dumps({"_id": "q1", "text": f"otters {tag} sleep in the reeds"}) + "\n"
    )
    beir.joinpath("qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\t/notes/otters-{tag}.md\t2\n")
    run = json.loads(kb("eval", str(beir), "--json").stdout)
    assert [(each["question"], each["measures"]["ndcg"]) for each in run["both"]] == [("q1", 1.0)]


@pytest.mark.parametrize(
    "text",
    [
        "- question: x",
        "question: x",
        "- [",
        "[]",
        "- {question: x, document: y, answer: z}",
        "- {question: x, documents: []}",
    ],
)
def test_a_file_of_another_form_is_refused_with_the_right_one(kb, folder, text):
    path = folder / "bad.yaml"
    path.write_text(text)
    ended = kb("eval", str(path))
    assert ended.returncode == 2
    assert "bad.yaml" in ended.stderr


def test_measures_are_those_of_trec_eval():
    draws = random.Random(1)
    for _ in range(50):
        grades = {str(number): draws.randint(0, 2) for number in range(30)} | {"x": 1}
        order = [*map(str, range(200))]
        draws.shuffle(order)
        run = {"q": {document: 1 / place for place, document in enumerate(order[:120], 1)}}
        [expected] = pytrec_eval.RelevanceEvaluator({"q": grades}, {"ndcg_cut.10", "recall.100"}).evaluate(run).values()
        found = Measures.of([grades.get(document, 0) for document in order[:120]], [*grades.values()])
        assert (found.ndcg, found.recall) == pytest.approx((expected["ndcg_cut_10"], expected["recall_100"]))


def test_the_same_values_have_the_same_interval():
    values = [0.0, 0.5, 1.0] * 20
    assert mean(values) == mean(values)
    assert mean(values).low < mean(values).value < mean(values).high
