"""What is done to a knowledge base from outside its server: looking whether it is whole, and making it anew."""

from __future__ import annotations

from contextlib import closing
from hashlib import file_digest
from typing import TYPE_CHECKING

from kb.documents.originals import Originals
from kb.embed.open import open_embedder
from kb.ingest.chunk import Chunker
from kb.store.lock import sole_user
from kb.store.open import database_lock, database_path
from kb.store.rows import VectorSpace
from kb.store.sqlite.rebuild import rebuild
from kb.store.sqlite.verify import Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from kb.settings import Settings


def verify(settings: Settings) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the checks by name, and with each what it finds wrong. Nothing is written; an engine may be at work.

    Raises:
        StoreError: there is no database that could be looked at.
    """
    with closing(Verification(database_path(settings.database_url, settings.data_dir))) as database:
        for name, check in database.checks.items():
            yield name, check()
        yield "files", _damaged_files(database, Originals(settings.files_dir, keep=settings.keep_files))
        yield "waiting files", _missing_staged(database, settings)


def reindex(settings: Settings, on_chunks: Callable[[int, int], None], *, anew: bool) -> None:
    """Make the database anew from its texts; nothing changes until all of it is there.

    Args:
        settings: those of the engine, which must not run.
        on_chunks: is told how many chunks have their vector, and of how many.
        anew: make every vector, instead of those alone that are damaged or missing.

    Raises:
        StartError: the engine runs, or the model or the database cannot be used.
    """
    path = database_path(settings.database_url, settings.data_dir)
    with sole_user(settings.data_dir / "kb.lock"), sole_user(database_lock(path)):
        embedder = open_embedder(settings.model_dir, settings.data_dir, settings.device, settings.precision)
        chunker = Chunker(embedder)

        def embed(chunks: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
            return embedder.embed_passages([chunker.passage(header, text) for header, text in chunks])

        rebuild(path, VectorSpace.of(embedder.spec), embed, on_chunks, anew=anew)


def _damaged_files(database: Verification, originals: Originals) -> Iterator[str]:
    """Yield the files that are not what they were. One that is not there may never have been kept."""
    for document_id, content_hash in database.file_hashes():
        path = originals.path(content_hash)
        if path.exists():
            with path.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != content_hash:
                    yield f"the file of document {document_id} is not what it was: {path}"


def _missing_staged(database: Verification, settings: Settings) -> Iterator[str]:
    for job_id, name in database.staged():
        if not (settings.staging_dir / name).exists():
            yield f"the file that job {job_id} waits with is not there"
