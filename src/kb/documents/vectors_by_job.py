"""Vectors that were not ready when the passages of a document were written: a job makes them later."""

from kb.documents.lookup import existing_document
from kb.embed.protocol import Embedder
from kb.ingest.chunk import Chunker
from kb.ingest.draft import NO_VECTORS, Draft
from kb.store.protocol import Store, Transaction
from kb.store.rows import Author, Content, NewChunk, VectorSpace


def await_vectors(tx: Transaction, document_id: int, author: Author) -> None:
    """Queue a job for the vectors that a document lacks, if it lacks any."""
    if waiting := tx.documents.without_vectors(document_id):
        title = existing_document(tx, document_id).title
        tx.jobs.await_vectors(document_id, title, "".join(chunk.text for chunk in waiting), author)


def draft_of(store: Store, document_id: int, embedder: Embedder) -> Draft:
    """Return a draft of the passages of a document that lack vectors; of none if the document is gone."""
    embedder = embedder.current
    chunker = Chunker(embedder)
    with store.read() as tx:
        document = tx.documents.get(document_id)
        waiting = tx.documents.without_vectors(document_id) if document else []
    return Draft(
        document.doc_type if document else "",
        document.title if document else "",
        document.content_hash if document else "",
        [NewChunk(chunk.text, chunk.header, chunk.place) for chunk in waiting],
        NO_VECTORS,
        inputs=[chunker.passage(chunk.header, chunk.text) for chunk in waiting],
        space=VectorSpace.of(embedder.spec),
    )


def add_vectors(tx: Transaction, document_id: int, content: Content) -> None:
    """Give those passages of a document their vectors that lack one and are in this content."""
    made = {(chunk.header, chunk.text): vector for chunk, vector in zip(content.chunks, content.vectors, strict=True)}
    waiting = tx.documents.without_vectors(document_id) if made and tx.documents.get(document_id) else []
    found = {chunk.id: made[passage] for chunk in waiting if (passage := (chunk.header, chunk.text)) in made}
    if found:
        tx.documents.set_vectors(document_id, found, content.space or tx.space)
