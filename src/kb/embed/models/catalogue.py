"""The models that kb knows by name."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from kb.embed.artifact import NAME


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the hub. See `catalogue.toml`; `form` is `onnx` for a model whose published graph is used."""

    name: str
    repository: str
    revision: str = "main"
    languages: str = ""
    dimensions: int = 0
    licence: str = ""
    megabytes: int = 0
    work: float = 0
    quality: str = ""
    source: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    form: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        return self.name == NAME


@cache
def catalogue() -> Mapping[str, Entry]:
    """Return the models by name."""
    text = files("kb.embed.models").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: Entry(name, **fields) for name, fields in tomllib.loads(text).items()}
