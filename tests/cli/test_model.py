"""kb model: a model of the hub or of a file comes into use by one command."""

from __future__ import annotations

import json
import random

import pytest

from kb.client.client import EngineClient
from tests.http.conftest import added
from tests.support.model_hub import model_hub
from tests.support.small_models import WORDS, write_small_model

NAME = "someone/small-model"


@pytest.mark.slow
async def test_a_model_of_the_hub_is_used_by_one_command_and_given_back(outside, start_server, tmp_path):
    raw = write_small_model(tmp_path / "raw")
    with model_hub(raw) as hub, start_server(tmp_path / "data", HF_ENDPOINT=hub.url) as server:
        hub.breaks = [1000, 2000, 3000, 1, 500]
        here = {"KB_ENGINE_URL": server.url}
        async with EngineClient(server.url) as client:
            await added(client, "The key is under the mat.")
            refused = outside("model", "use", NAME, env=here)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert "Add --yes" in refused.stderr
            used = outside("model", "use", NAME, "--yes", "--wait", env=here)
            assert (used.returncode, used.stderr) == (0, "")
            assert "in use  small-model (weights " in used.stdout.replace("in use    ", "in use  ")
            assert (await client.status())["model"]["name"] == "small-model"
            [found] = (await client.search(query="Where is the key?", vec_only=True))["results"]
            assert found["text"] == "The key is under the mat."
            listed = json.loads(outside("model", "list", "--json", env=here).stdout)["models"]
            assert [each["name"] for each in listed if each["is_in_use"]] == ["small-model"]
            lines = outside("model", env=here).stdout.splitlines()
            assert any(
                line.startswith("multilingual-e5-small: 488 MB, about 100, 384 dimensions, MIT") for line in lines
            )
            assert outside("model", "rollback", "--wait", env=here).returncode == 0
            assert outside("model", "finish", env=here).returncode == 0
            assert (await client.status())["model"]["name"] == "all-MiniLM-L6-v2"
        wrong = outside("model", "use", "no-such-model", "--yes", env=here)
        assert wrong.returncode == 6
        assert "kb does not know 'no-such-model'" in wrong.stderr


@pytest.mark.slow
def test_a_packed_model_is_used_without_an_engine_or_a_network(outside, tmp_path, model_files):
    raw, packed = write_small_model(tmp_path / "raw"), tmp_path / "small.kbmodel"
    here = {"KB_DATA_DIR": str(tmp_path / "data"), "HF_ENDPOINT": "http://127.0.0.1:9"}
    (tmp_path / "data" / "models").mkdir(parents=True)
    (tmp_path / "data" / "models" / "all-MiniLM-L6-v2").symlink_to(model_files.onnx.parent)
    made = outside("model", "pack", raw, packed, env=here)
    assert (made.returncode, made.stderr) == (0, "")
    there = here | {"KB_DATA_DIR": str(tmp_path / "other")}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "models").symlink_to(tmp_path / "data" / "models")
    used = outside("model", "use", packed, "--yes", env=there)
    assert used.returncode == 0, used.stderr
    assert "raw (weights " in used.stdout


@pytest.mark.slow
def test_a_model_is_measured_on_the_documents_and_questions_of_a_folder(outside, tmp_path, model_files):
    raw, folder, draws = write_small_model(tmp_path / "raw"), tmp_path / "questions", random.Random(1)
    here = {"KB_DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "data" / "models").mkdir(parents=True)
    (tmp_path / "data" / "models" / "all-MiniLM-L6-v2").symlink_to(model_files.onnx.parent)
    folder.mkdir()
    texts = [" ".join(draws.choices(WORDS[4:], k=24)) for _ in range(12)]
    lines = {"corpus": texts, "queries": [text[:40] for text in texts]}
    for name, each in lines.items():
        records = [
            json.dumps({"_id": str(number), "text": f"{text}\u2028"}, ensure_ascii=False)
            for number, text in enumerate(each)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join([*records, ""]), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(["q\td\tgrade", *(f"{each}\t{each}\t1" for each in range(12))]))
    done = outside("model", "measure", raw, folder, env=here)
    assert (done.returncode, done.stderr) == (0, "")
    fp32, int8, verdict = done.stdout.splitlines()
    assert fp32.startswith("fp32: nDCG@10 ")
    assert int8.startswith("int8: nDCG@10 ")
    [manifest] = (tmp_path / "data").glob("models/raw-[0-9a-f]*/manifest.json")
    suits = json.loads(manifest.read_bytes())["suits_int8"]
    assert verdict == ("int8 suits this model." if suits else "int8 does not suit this model.")
    gained = float(int8.split()[2].strip(",")) - float(fp32.split()[2].strip(","))
    assert suits is (gained >= -0.005)
    (folder / "corpus.jsonl").write_text("\n".join(['{"_id": "1", "text": " "}', ""]))
    assert "corpus.jsonl contains no documents" in outside("model", "measure", "raw", folder, env=here).stderr
    (folder / "corpus.jsonl").write_text("[]\n")
    refused = outside("model", "measure", "raw", folder, env=here)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "corpus.jsonl cannot be read" in refused.stderr
