"""Models of several kinds, exported and run: their vectors are those of sentence-transformers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from kb.api.errors import ModelError
from kb.embed.artifact import load_model
from kb.embed.models.prepare import prepare
from kb.embed.models.sentence_transformer import convert
from kb.embed.onnx.embedder import OnnxEmbedder
from kb.embed.protocol import ModelSpec
from tests.conftest import without_settings

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
SentenceTransformer = pytest.importorskip("sentence_transformers").SentenceTransformer
parts = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

TEXTS = [
    "",
    "Where is the key?",
    "猫がマットの上に座っている",
    "river stone light " * 90,
    "river stone light " * 30,
    "a b",
    "12.5 %",
]
SMALL = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
KINDS = {
    "bert": transformers.BertConfig(**SMALL, vocab_size=30522, max_position_embeddings=128),
    "roberta": transformers.RobertaConfig(**SMALL, vocab_size=30522, max_position_embeddings=130, pad_token_id=1),
    "mpnet": transformers.MPNetConfig(**SMALL, vocab_size=30527, max_position_embeddings=130),
    "distilbert": transformers.DistilBertConfig(
        dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=128
    ),
    "electra": transformers.ElectraConfig(**SMALL, embedding_size=32, vocab_size=30522, max_position_embeddings=128),
    "modernbert": transformers.ModernBertConfig(
        **SMALL, vocab_size=30522, max_position_embeddings=128, pad_token_id=0, cls_token_id=101, sep_token_id=102
    ),
}
TO_SEARCH = "Represent this sentence for searching relevant passages: "
FAMILIES = {
    "bge": {"kind": "bert", "pooling": "cls", "normalize": True, "prompts": {"query": TO_SEARCH}},
    "e5": {"kind": "bert", "normalize": True, "prompts": {"query": "query: ", "document": "passage: "}},
    "multilingual e5": {"kind": "roberta", "prompts": {"query": "query: ", "document": "passage: "}},
    "arctic": {"kind": "bert", "pooling": "cls", "prompts": {"query": TO_SEARCH}},
    "gte": {"kind": "bert", "normalize": True},
    "gte of modernbert": {"kind": "modernbert", "pooling": "cls"},
    "with a dense layer": {"kind": "bert", "dense": 20, "normalize": True},
    "with a dense layer that is linear": {"kind": "distilbert", "dense": 64, "activation": torch.nn.Identity()},
    "truncated": {"kind": "bert", "normalize": True, "truncate_dim": 16, "prompts": {"query": "query: "}},
    "dense and truncated": {"kind": "bert", "pooling": "cls", "dense": 64, "truncate_dim": 32},
}


@pytest.fixture
def model_of(tmp_path, raw_model):
    """Saves a small model of random weights as sentence-transformers does; `model_of("bert", pooling="cls")`."""

    def make(
        kind,
        pooling="mean",
        dense=None,
        window=100,
        activation=None,
        normalize=False,
        include_prompt=True,
        **settings,
    ):
        torch.manual_seed(7)
        body, folder = tmp_path / "body", tmp_path / f"a-{kind}"
        transformers.AutoModel.from_config(KINDS[kind]).save_pretrained(body)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(raw_model / "tokenizer.json"), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
        )
        tokenizer.save_pretrained(body)
        transformer = parts.Transformer(str(body), max_seq_length=window)
        modules = [transformer, parts.Pooling(48, pooling, include_prompt)]
        if dense:
            modules.append(parts.Dense(48, dense, activation_function=activation or torch.nn.Tanh()))
        if normalize:
            modules.append(parts.Normalize())
        SentenceTransformer(modules=modules, device="cpu", **settings).save(str(folder))
        return folder

    return make


def cosines(folder, exported):
    """Of queries and of documents, both ways."""
    reference = SentenceTransformer(str(folder), device="cpu")
    ours = OnnxEmbedder(exported, "cpu")
    queries = ours.embed_queries(TEXTS) * reference.encode_query(TEXTS, normalize_embeddings=True)
    passages = ours.embed_passages(TEXTS) * reference.encode_document(TEXTS, normalize_embeddings=True)
    return np.vstack([queries, passages]).sum(axis=1)


def exported(folder, target):
    from kb.embed.models.export import export

    return export(str(folder), target)


@pytest.mark.requirement("S-4")
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_any_kind_gives_the_vectors_that_it_gave(model_of, tmp_path, kind):
    folder = model_of(kind)
    files = exported(folder, tmp_path / "exported")
    assert cosines(folder, files).min() > 0.99999
    assert (files.manifest.model, files.manifest.dimensions, files.manifest.window) == (f"a-{kind}", 48, 100)


@pytest.mark.parametrize(
    ("pooling", "dense"), [("cls", None), ("max", None), ("mean", 20), ("mean_sqrt_len_tokens", None)]
)
def test_pooling_and_dense_layers_are_the_models_own(model_of, tmp_path, pooling, dense):
    folder = model_of("bert", pooling, dense)
    files = exported(folder, tmp_path / "exported")
    assert cosines(folder, files).min() > 0.99999
    assert files.manifest.dimensions == (dense or 48)


@pytest.mark.requirement("S-4")
@pytest.mark.parametrize("family", FAMILIES)
def test_queries_and_documents_have_the_vectors_that_their_model_gives_them(model_of, tmp_path, family):
    folder = model_of(**FAMILIES[family])
    assert cosines(folder, exported(folder, tmp_path / "exported")).min() >= 0.9999


def test_how_a_model_is_fed_is_read_from_its_own_configuration(model_of, tmp_path):
    prompts = {"query": "query: ", "document": "passage: ", "clustering": "group: "}
    folder = model_of("bert", "cls", dense=20, window=64, normalize=True, truncate_dim=16, prompts=prompts)
    files = exported(folder, tmp_path / "exported")
    assert OnnxEmbedder(files, "cpu").spec == ModelSpec(
        name="a-bert",
        digest=files.manifest.digest,
        precision="fp32",
        dimensions=16,
        window=64,
        special_tokens=2,
        query_prefix="query: ",
        passage_prefix="passage: ",
    )
    assert (files.manifest.pooling, files.manifest.normalize, files.manifest.truncate_dim) == ("cls", True, 16)


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_the_prompt_for_documents_goes_by_any_of_its_usual_names(model_of, tmp_path, name):
    folder = model_of("bert", prompts={name: "read: "})
    files = exported(folder, tmp_path / "exported")
    reference = SentenceTransformer(str(folder), device="cpu")
    expected = reference.encode(TEXTS, prompt_name=name, normalize_embeddings=True)
    assert np.sum(OnnxEmbedder(files, "cpu").embed_passages(TEXTS) * expected, axis=1).min() >= 0.9999


def test_prompts_for_neither_queries_nor_documents_are_mentioned(model_of, tmp_path, caplog):
    files = exported(model_of("bert", prompts={"clustering": "group: "}), tmp_path / "exported")
    assert (files.manifest.query_prefix, files.manifest.passage_prefix) == ("", "")
    assert "has prompts (clustering), but not for queries or documents" in caplog.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 19, "prompts": {"query": "query: "}}, "reads 19 tokens, 4 of them for its prefix"),
        ({"window": 12}, "kb needs 16 more for a text"),
        ({"include_prompt": False, "prompts": {"query": "query: "}}, "excludes its prompts from the pooling"),
        ({"similarity_fn_name": "dot"}, "compares vectors that are not of length 1 by dot"),
        ({"similarity_fn_name": "dot", "normalize": True, "truncate_dim": 8}, "not of length 1 by dot"),
    ],
)
def test_what_cannot_be_represented_is_refused_in_one_line_and_leaves_nothing(model_of, tmp_path, settings, words):
    with pytest.raises(ModelError) as refused:
        exported(model_of("bert", **settings), tmp_path / "made" / "exported")
    assert words in refused.value.detail
    assert "\n" not in refused.value.detail
    assert not list(tmp_path.glob("made/*"))


def test_modules_of_an_unknown_kind_are_refused_by_name(model_of, tmp_path):
    model = SentenceTransformer(str(model_of("bert")), device="cpu")
    model.append(parts.WordWeights([], {}))
    model.save(str(tmp_path / "weighted"))
    with pytest.raises(ModelError, match="has modules of the type WordWeights, which kb does not support"):
        exported(tmp_path / "weighted", tmp_path / "exported")


def test_a_model_that_compares_unit_vectors_by_their_product_is_taken(model_of, tmp_path):
    folder = model_of("bert", normalize=True, similarity_fn_name="dot")
    assert cosines(folder, exported(folder, tmp_path / "exported")).min() >= 0.9999


def test_the_digest_is_of_the_weights_and_how_they_are_put_together(model_of, tmp_path):
    digests = [
        exported(model_of("bert", pooling), tmp_path / f"{number}").manifest.digest
        for number, pooling in enumerate(["mean", "mean", "cls"])
    ]
    assert digests[0] == digests[1] != digests[2]


def test_an_exported_model_serves_as_the_engines_also_in_half_precision(model_of, tmp_path):
    files = exported(model_of("bert"), tmp_path / "exported")
    assert prepare(tmp_path / "exported", tmp_path / "data") == files
    half = prepare(tmp_path / "exported", tmp_path / "data", "fp16")
    assert (half.precision, half.manifest.digest, half.manifest.dimensions) == ("fp16", files.manifest.digest, 48)


def test_the_default_model_exported_is_the_same_model(raw_model, model_files, tmp_path):
    raw = tmp_path / "raw"
    parts_of_it = [parts.Transformer(str(raw_model), max_seq_length=256), parts.Pooling(384)]
    SentenceTransformer(modules=parts_of_it, device="cpu").save(str(raw))
    files = exported(raw, tmp_path / "exported")
    ours, theirs = (OnnxEmbedder(each, "cpu").embed_passages(TEXTS) for each in (model_files, files))
    assert np.sum(ours * theirs, axis=1).min() > 0.99999


def test_what_is_no_model_is_refused_in_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="cannot load") as refused:
        exported(tmp_path / "empty", tmp_path / "made" / "exported")
    assert "\n" not in refused.value.detail
    assert not (tmp_path / "made").exists()


def test_a_folder_that_holds_something_is_left_alone(model_of, tmp_path):
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / "mine").write_text("mine")
    with pytest.raises(ModelError, match="not empty"):
        exported(model_of("bert"), tmp_path / "exported")
    assert [path.name for path in (tmp_path / "exported").iterdir()] == ["mine"]


def test_the_command_says_what_was_made_and_how_to_use_it(model_of, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "kb_cli.main", "model", "export", model_of("bert")],
        env=without_settings() | {"KB_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=True,
    )
    target = tmp_path / "data" / "exported" / "a-bert"
    assert f"KB_MODEL_DIR={target}" in ended.stdout
    assert load_model(target).manifest.digest in ended.stdout


@pytest.mark.requirement("S-4")
@pytest.mark.parametrize("family", [name for name, each in FAMILIES.items() if each["kind"] in ("bert", "roberta")])
def test_a_bert_written_without_torch_gives_the_vectors_of_sentence_transformers(model_of, tmp_path, family):
    folder = model_of(**FAMILIES[family])
    files = convert(folder, tmp_path / "converted", "a-model")
    assert cosines(folder, files).min() > 0.99999
    assert files.manifest.window == 100
    assert files.manifest.dimensions == exported(folder, tmp_path / "exported").manifest.dimensions


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [("distilbert", {}, "it is a distilbert"), ("bert", {"pooling": "max"}, "its pooling is max")],
)
def test_what_is_not_written_without_torch_is_named(model_of, tmp_path, kind, options, words):
    with pytest.raises(ModelError, match=words):
        convert(model_of(kind, **options), tmp_path / "converted", "a-model")
    assert not (tmp_path / "converted").exists()
