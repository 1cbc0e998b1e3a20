"""Documents as they are answered: with what took their place."""

from __future__ import annotations

from collections.abc import Sequence

from kb.api.models import Chunk, Document, DocumentWithChunks
from kb.routes.dependencies import Services
from kb.store import rows
from kb.store.protocol import Transaction


def models_of(tx: Transaction, documents: Sequence[rows.Document]) -> list[Document]:
    """Return documents, each with what took its place."""
    successors = tx.documents.successors([document.id for document in documents])
    models = [Document.model_validate(document) for document in documents]
    for model in models:
        if model.replaces and not (tx.documents.get(model.replaces) or tx.history.binned(model.replaces)):
            model.replaces = None
        model.replaced_by = successors[model.id][-1] if model.id in successors else None
    return models


def model_of(services: Services, document: rows.Document) -> Document:
    """Return a document as it stands."""
    with services.store.read() as tx:
        [model] = models_of(tx, [document])
        return model


def with_chunks(
    document: Document, chunks: Sequence[rows.Chunk], count: int, author: rows.Author, part_of: int | None = None
) -> DocumentWithChunks:
    """Return the document with some of its chunks, how many it has, who made it what it is, and what it came inside."""
    models = [Chunk.model_validate(chunk) for chunk in chunks]
    by = {"by": author.by, "client": author.client}
    return DocumentWithChunks(**dict(document), **by, chunks=models, chunk_count=count, part_of=part_of)
