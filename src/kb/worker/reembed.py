"""Recompute all vectors with another model, while searches use the current vectors.

New vectors are stored at once, so the work continues after any end of the engine. When none is missing, one transaction
makes them the vectors in use; the previous ones are kept, and a rollback works the same way. If several engines share a
database, one of them computes the vectors. The others load the model in the meantime, use the current vectors, and take
over if that engine stops.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kb.api.errors import DiskFault, DiskFull, KbError, ModelError, NotReembedding, Stopped, StoreUnavailable
from kb.api.fields import ReembedAction
from kb.api.maintenance_models import Reembedding
from kb.embed.artifact import ModelFiles
from kb.embed.models.install import check_known, install
from kb.embed.open import open_model
from kb.embed.protocol import Embedder
from kb.ingest.active_model import ActiveModel, open_model_for
from kb.ingest.chunk import Chunker
from kb.ingest.stop_signal import StopSignal
from kb.settings import Settings
from kb.store.default_space import DEFAULT_SPACE
from kb.store.protocol import Store, Transaction
from kb.store.rows import SecondSpace, VectorSpace

logger = logging.getLogger(__name__)

SLICE: Final = 64
RETRY_SECONDS: Final = 5.0
FOLLOW_SECONDS: Final = 1.0
"""The pause between checks of a shared database for changes by other engines."""

AT_WORK: Final = ("building", "returning")
REFUSALS: Final = {
    "building": "kb is still computing the new vectors. To discard them, run 'kb reembed rollback'.",
    "stopped": "The new vectors are incomplete."
    " Run 'kb reembed resume' to continue, or 'kb reembed rollback' to discard them.",
    "returning": "kb is switching back to the earlier vectors. To keep the new ones, run 'kb reembed stop'.",
    "kept": "The new vectors are in use. Run 'kb reembed finish' to delete the earlier ones, or 'kb reembed rollback'"
    " to use them again.",
}
"""The refusal of an action, by state."""

FAILED: Final = "It failed. See the engine's log."


class Cancelled(Exception):
    """The new vectors are no longer needed."""


class VectorBuilder:
    """Computes the second set of vectors and puts it into use.

    Args:
        space: the space of the new vectors.
        embedder: the model that computes them.
        on_progress: receives the numbers of vectors done and in total.
        check: is called regularly and may stop the work by raising an error.
    """

    def __init__(
        self,
        store: Store,
        space: VectorSpace,
        embedder: Embedder,
        on_progress: Callable[[int, int], None],
        check: Callable[[], None],
    ) -> None:
        self._store = store
        self._on_progress = on_progress
        self._space = space
        self._embedder = embedder
        self._chunker = Chunker(embedder)
        self._check = check
        with store.read() as tx:
            self.done, self.total = tx.second.counts()

    def build(self) -> None:
        """Compute the missing vectors, and switch to the new set.

        Raises:
            Cancelled: the work was stopped or replaced by other work.
        """
        while True:
            self._fill()
            while self._code():
                self._check()
            if self._switch():
                return

    def _fill(self) -> None:
        after = 0
        while True:
            self._check()
            with self._store.read() as tx:
                rows = tx.second.missing(after, SLICE)
            if not rows:
                return
            vectors = self._embed((row.header, row.text) for row in rows)
            with self._turn() as tx:
                tx.second.add([row.chunk_id for row in rows], vectors)
            after = rows[-1].chunk_id
            self._count(len(rows))

    def _code(self) -> bool:
        with self._turn() as tx:
            return tx.second.code()

    def _switch(self) -> bool:
        """Compute the last missing vectors while nobody can write, and switch, unless many are missing."""
        with self._turn() as tx:
            if rows := tx.second.missing(0, SLICE):
                vectors = self._embed((row.header, row.text) for row in rows)
                tx.second.add([row.chunk_id for row in rows], vectors)
            while tx.second.code():
                pass
            return tx.second.switch()

    @contextmanager
    def _turn(self) -> Iterator[Transaction]:
        """Open a write transaction, if the work is still wanted and this engine's."""
        with self._store.write() as tx:
            second = tx.second.get()
            if second is None or second.state not in AT_WORK or second.space != self._space or not tx.second.take():
                raise Cancelled
            yield tx

    def _count(self, made: int) -> None:
        self.done += made
        self.total = max(self.total, self.done)
        self._on_progress(self.done, self.total)

    def _embed(self, chunks: Iterable[tuple[str, str]]) -> NDArray[np.float32]:
        return self._embedder.embed_passages([self._chunker.passage(header, text) for header, text in chunks])


class Reembedder:
    """Computes a second set of vectors in a thread on request, and keeps the model of the vectors in use active.

    Args:
        settings: the settings of the engine, which name the wanted model.
        space: the space of that model.
        model: the active model.
        on_switch: receives the model that has come into use.
        on_progress: receives the numbers of vectors done and in total.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        space: VectorSpace,
        model: ActiveModel,
        on_switch: Callable[[Embedder], None] = lambda _: None,
        on_progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._wanted = space
        self._model = model
        self._on_switch = on_switch
        self._on_progress = on_progress
        self._stop = StopSignal()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._builder: VectorBuilder | None = None
        self._error: str | None = None
        self._asked: str | None = None
        self._is_unwanted = False
        self._step: str | None = None

    @property
    def is_busy(self) -> bool:
        """Whether vectors are being computed."""
        return self._builder is not None

    def progress(self) -> Reembedding:
        with self._store.read() as tx:
            in_use, second = tx.space, tx.second.get()
            builder = self._builder
            done, total = (builder.done, builder.total) if builder else tx.second.counts()
        return Reembedding(
            in_use=str(in_use),
            wanted=str(self._wanted),
            other=str(second.space) if second else None,
            state=second.state if second else None,
            done=done if second else 0,
            total=total,
            step=self._step,
            error=self._error,
        )

    def act(self, action: ReembedAction) -> Reembedding:
        """Request an action, which the thread carries out.

        Raises:
            NotReembedding: the action does not apply to the current state.
        """
        with self._lock:
            is_asked = self._asked is not None and action in ("stop", "rollback")
            if is_asked and self._builder:  # what was asked for only waits
                self._asked = self._step = None
            self._is_unwanted = is_asked and not self._builder
        if not self._is_unwanted:
            self.decide(action)
        self._go_on()
        return self.progress()

    def use(self, model: str) -> Reembedding:
        """Install a model in the background, and then compute all vectors with it.

        Args:
            model: see `kb.embed.models.install.install`.

        Raises:
            NotReembedding: a model is being installed, or there is no such model.
        """
        with self._lock:
            if self._asked:
                raise NotReembedding(f"kb is installing the model {self._asked}. Wait until it is in use.")
            try:
                check_known(model, self._settings.data_dir)
            except ModelError as error:
                raise NotReembedding(error.detail) from error
            self._asked, self._step, self._is_unwanted = model, "installing", False
        self._go_on()
        return self.progress()

    def install(self, model: str) -> None:
        """Install a model, and begin with it. The argument is that of `use`; see `begin` for the errors."""
        self.begin(install(model, self._settings.data_dir, self._show_step, self._settings.model_dir))

    def begin(self, files: ModelFiles) -> None:
        """Record that all vectors shall be computed with an installed model; if they are of it, nothing changes.

        Raises:
            ModelError: the model cannot be used.
            NotReembedding: the vectors of still another model are being computed.
        """
        where = self._settings
        opened = open_model(files, where.data_dir, where.device, where.precision, None, lambda *_: None)
        folder = None if VectorSpace.of(opened.spec) == DEFAULT_SPACE else files.onnx.parent
        with self._store.write() as tx:
            self._show_step("beginning")  # or somebody stopped it in the meantime
            second, wanted = tx.second.get(), VectorSpace.of(opened.spec, folder)
            if tx.space != wanted or (second and second.state != "kept"):
                self._begin(tx, second, wanted)
        self._step = None

    def decide(self, action: ReembedAction) -> None:
        """Record the requested action.

        Raises:
            NotReembedding: the action does not apply to the current state.
        """
        with self._store.write() as tx:
            self._change(tx, action)

    def renew(self) -> None:
        """Compute all vectors with the wanted model, also if they are of this model, and delete the former ones.

        Raises:
            KbError: the database cannot be used.
        """
        with self._store.write() as tx:
            tx.second.begin(self._wanted)
        self.run()
        with self._store.write() as tx:
            tx.second.discard()

    def resume(self) -> None:
        """Continue work that another engine had begun."""
        with self._store.write() as tx:
            second = tx.second.get()
            if second and second.space == tx.space:  # 'kb reindex --vectors' was interrupted
                tx.second.discard()
        if self._store.is_shared or (second and second.state in AT_WORK):
            self._go_on()

    def close(self) -> None:
        """Stop after the current slice."""
        self._stop.request()
        self._wake.set()
        if self._thread:
            self._thread.join()

    def run(self) -> None:
        """Compute the missing vectors, and switch, unless another engine does.

        Raises:
            KbError: the model or the database cannot be used.
        """
        with self._store.read() as tx:
            second = tx.second.get()
        if second is None or second.state not in AT_WORK:
            return self._model.announce(None)
        embedder = self._model_of(second.space)
        self._model.announce(embedder)
        with self._store.write() as tx:
            is_taken = tx.second.take()
        if is_taken:
            self._build(second.space, embedder)
        return None

    def _build(self, space: VectorSpace, embedder: Embedder) -> None:
        self._builder = VectorBuilder(self._store, space, embedder, self._progressed, self._stop.check)
        try:
            self._builder.build()
            self._use(embedder)
        except Cancelled:
            pass
        finally:
            self._model.announce(None)
            self._builder = None

    def _follow(self) -> None:
        """Load the model of the vectors in use, because another engine may have switched."""
        with self._store.read() as tx:
            space = tx.space
        if space != VectorSpace.of(self._model.spec):
            self._use(self._model_of(space))

    def _use(self, embedder: Embedder) -> None:
        self._model.use(embedder)
        self._on_switch(embedder)
        logger.info("searches now use vectors of %s", VectorSpace.of(embedder.spec))

    def _model_of(self, space: VectorSpace) -> Embedder:
        models = (model for model in self._model.models if VectorSpace.of(model.spec) == space)
        return next(models, None) or open_model_for(space, self._settings)

    def _progressed(self, done: int, total: int) -> None:
        self._error = None  # the work continues after an error
        self._on_progress(done, total)

    def _change(self, tx: Transaction, action: ReembedAction) -> None:
        second = tx.second.get()
        if action == "start":
            return self._begin(tx, second, self._wanted)
        if second is None:
            raise NotReembedding("kb has only the vectors in use. Start with 'kb reembed'.")
        state = second.state
        match action, state:
            case "stop", "building" | "stopped":
                tx.second.set_state("stopped")
            case "stop", "returning":
                tx.second.set_state("kept")
            case "resume", "building" | "stopped":
                tx.second.set_state("building")
            case ("rollback", "building" | "stopped") | ("finish", "kept"):
                tx.second.discard()
            case ("rollback", "kept") | ("rollback" | "resume", "returning"):
                tx.second.set_state("returning")
            case _:
                raise NotReembedding(REFUSALS[state])
        return None

    def _begin(self, tx: Transaction, second: SecondSpace | None, wanted: VectorSpace) -> None:
        if tx.space == wanted:
            raise NotReembedding(f"kb already has vectors from {tx.space}. For another model, run 'kb model use'.")
        if second is None or second.space != wanted:
            tx.second.begin(wanted)
        elif second.state in ("kept", "stopped"):
            tx.second.set_state("returning" if second.state == "kept" else "building")

    def _go_on(self) -> None:
        self._error = None
        self._wake.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="kb-reembed")
                self._thread.start()

    def _install_asked(self) -> None:
        asked = self._asked
        if not asked:
            return
        self._error = None
        try:
            self.install(asked)
        except Cancelled:
            logger.info("the model %s is not installed", asked)
        finally:
            self._asked = self._step = None

    def _show_step(self, step: str) -> None:
        self._stop.check()
        if self._is_unwanted:
            raise Cancelled
        self._step = step

    def _work(self) -> None:
        while not self._stop.is_requested:
            self._wake.wait(FOLLOW_SECONDS if self._store.is_shared else None)
            self._wake.clear()
            try:
                self._install_asked()
                if self._store.is_shared:
                    self._follow()
                self.run()
            except Stopped:
                return
            except (DiskFull, DiskFault) as error:
                self._error = error.detail
                self._wake.wait(RETRY_SECONDS)
                self._wake.set()
            except StoreUnavailable as error:  # the database listener also logs this
                self._error = error.detail
            except KbError as error:
                if self._error != error.detail:  # with a shared database, this repeats
                    logger.error("could not compute the new vectors: %s", error.detail)
                self._error = error.detail
            except Exception:
                if self._error != FAILED:
                    logger.exception("could not compute the new vectors")
                self._error = FAILED
