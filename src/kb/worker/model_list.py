"""What the models that kb can use are, and how long they would take here."""

from typing import Final

from kb.api.maintenance_models import Model, ModelList
from kb.embed.artifact import ModelManifest
from kb.embed.benchmark import passages_per_second
from kb.embed.models.catalogue import Entry, catalogue
from kb.embed.models.install import installed
from kb.embed.protocol import Embedder
from kb.settings import Settings
from kb.store.protocol import Store
from kb.store.rows import VectorSpace

_speeds: Final[dict[tuple[str, str], float]] = {}
"""The passages per second of each digest and precision, measured once."""


def list_models(store: Store, embedder: Embedder, settings: Settings) -> ModelList:
    """Return the models of the catalogue, those in the data folder and, wherever it is, the one in use."""
    with store.read() as tx:
        passages, used = tx.second.counts()[1], tx.space
    here = {files.manifest.model: files.manifest for _, files in installed(settings.data_dir / "models")}
    known = catalogue()
    dimensions = {name: made.dimensions for name, made in here.items()} | {used.model: used.dimensions}
    others = [Entry(name, "", dimensions=length) for name, length in dimensions.items() if name not in known]
    speed = _speed(embedder.current)
    pace = speed * known[used.model].work if used.model in known else None
    entries = [*known.values(), *others]
    return ModelList(
        passages=passages,
        models=[_model(entry, here.get(entry.name), used, pace, speed, passages) for entry in entries],
    )


def _speed(embedder: Embedder) -> float:
    key = embedder.spec.digest, embedder.spec.precision
    if key not in _speeds:
        _speeds[key] = passages_per_second(embedder)
    return _speeds[key]


def _model(
    entry: Entry, made: ModelManifest | None, used: VectorSpace, pace: float | None, speed: float, passages: int
) -> Model:
    is_in_use = used.model == entry.name
    rate = speed if is_in_use else pace / entry.work if pace and entry.work else None
    return Model(
        name=entry.name,
        repository=entry.repository or None,
        languages=entry.languages,
        dimensions=entry.dimensions,
        licence=entry.licence,
        megabytes=entry.megabytes,
        quality=entry.quality,
        source=entry.source,
        is_in_use=is_in_use,
        is_installed=is_in_use or made is not None,
        passages_per_second=round(rate, 1) if rate else None,
        seconds=round(passages / rate, 1) if rate else None,
    )
