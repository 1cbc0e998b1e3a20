"""Recompute all vectors while the engine is stopped, for a database whose model no longer exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kb.api.fields import ReembedAction
from kb.api.maintenance_models import ModelList, Reembedding
from kb.backup.swap import complete_restore
from kb.embed.models.install import install
from kb.ingest.active_model import ActiveModel
from kb.repair.named_model import open_named_model
from kb.running_engine import lock_path
from kb.settings import Settings
from kb.store.engine_lock import sole_user
from kb.store.open import open_store
from kb.store.rows import VectorSpace
from kb.worker.model_list import list_models
from kb.worker.reembed import Reembedder


def reembed(
    settings: Settings, action: ReembedAction | None, on_chunks: Callable[[int, int], None], model: str | None = None
) -> Reembedding:
    """Run the requested action to its end; `resume` continues an interrupted run.

    Args:
        settings: the settings of the engine, which must not run.
        action: the action; None only returns the progress.
        on_chunks: receives the numbers of vectors done and in total.
        model: the model to start with; see `kb.embed.models.install`. By default, the one of the settings.

    Raises:
        NotReembedding: the action does not apply to the current state.
        StartError: the engine runs, or the model or the database cannot be used.
    """
    # Before the database is opened, which may lack just this model.
    files = install(model, settings.data_dir, model_dir=settings.model_dir) if action == "start" and model else None
    with opened_reembedder(settings, on_chunks) as reembedder:
        if files:
            reembedder.begin(files)
        elif action:
            reembedder.decide(action)
        if action:
            reembedder.run()
        return reembedder.progress()


@contextmanager
def opened_reembedder(settings: Settings, on_chunks: Callable[[int, int], None]) -> Iterator[Reembedder]:
    """Open a database without its model; the arguments and errors are those of `reembed`."""
    with sole_user(lock_path(settings.data_dir)):
        complete_restore(settings)
        made, in_use = open_named_model(settings)
        space = VectorSpace.of(made.spec, settings.model_dir)
        with open_store(settings, in_use or space) as store:
            yield Reembedder(store, settings, space, ActiveModel(made), on_progress=on_chunks)


def models(settings: Settings) -> ModelList:
    """Return the models that kb can use.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    with sole_user(lock_path(settings.data_dir)):
        made, in_use = open_named_model(settings)
        with open_store(settings, in_use or VectorSpace.of(made.spec, settings.model_dir)) as store:
            return list_models(store, made, settings)
