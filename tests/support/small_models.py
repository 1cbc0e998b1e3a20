"""A model of random weights as sentence-transformers saves it, small enough for any test, without torch."""

from __future__ import annotations

import json

import numpy as np

WIDTH, HEADS, INNER, LAYERS, PLACES = 32, 2, 48, 1, 96
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "key",
    "mat",
    "the",
    "is",
    "under",
    "where",
    "lease",
    "flat",
    "notice",
    "period",
    "of",
    "my",
]


def tokenizer():
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    made = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    return made


def small_weights(seed=0):
    numbers = np.random.default_rng(seed)
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    dense = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    dense |= {
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    for layer in range(LAYERS):
        for name, shape in dense.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"encoder.layer.{layer}.{name}.{kind}": (WIDTH,) for kind in ("weight", "bias")}
    return {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + b"".join(each.tobytes() for each in tensors.values()))


def write_small_model(folder, seed=0, **config):
    """Write such a model, and return its folder."""
    folder.mkdir(parents=True)
    about = {
        "model_type": "bert",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "vocab_size": len(WORDS),
        "max_position_embeddings": PLACES,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": 0,
    }
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    texts = {
        "config.json": about | config,
        "modules.json": [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in kinds],
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
        "config_sentence_transformers.json": {"prompts": {"query": "where ", "document": ""}},
    }
    for name, content in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    tokenizer().save(str(folder / "tokenizer.json"))
    write_safetensors(folder / "model.safetensors", small_weights(seed))
    return folder
