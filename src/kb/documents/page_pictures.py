"""Pages of PDFs as pictures, drawn in a separate parser process because the worker's is busy."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Final, Self, TypeVar

from kb.api.errors import NotFound, NotPaged, Unreadable
from kb.documents.originals import Originals
from kb.parser.sandbox import Limits, Sandbox
from kb.store.protocol import Store
from kb.store.rows import Chunk, Document

IDLE_SECONDS: Final = 60
"""The process ends after this time without a request."""

MAX_SLOW: Final = 1000
"""How many pages that took too long are remembered."""

MAX_COUNTS: Final = 10_000
"""For how many PDFs the page count is remembered."""

ALL: Final = 0
"""Used in place of a page number for all pages of a PDF."""

SMALL: Final = -1
"""Used in place of a page number for the thumbnail."""

PICTURED: Final = ("image", "pdf")
NO_THUMBNAIL: Final = "The file has no thumbnail"

Answer = TypeVar("Answer")


class PagePictures:
    """Draws one page after another.

    Args:
        limits: the limits for drawing one page.
    """

    def __init__(self, store: Store, originals: Originals, limits: Limits) -> None:
        self._store = store
        self._originals = originals
        self._sandbox = Sandbox(limits)
        self._slow: deque[tuple[str, int]] = deque(maxlen=MAX_SLOW)
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, "kb-pages")
        self._held: tuple[str, Path] | None = None
        self._file = ExitStack()
        self._used = 0.0
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.stop()
        self._thread.submit(self._close)
        self._thread.shutdown()
        if self._timer:
            self._timer.cancel()

    def draw(self, document: Document, number: int, index: int | None, words: Sequence[str] = ()) -> bytes:
        """Return a page, counted from 1, as PNG, with the chunk of this index marked, or these words in it.

        Raises:
            NotFound: the page or chunk does not exist, the file is not kept, or the page cannot be drawn.
            NotPaged: the document is not a PDF.
            Stopped: the engine stops.
        """
        if document.doc_type != "pdf":
            raise NotPaged
        with self._store.read() as tx:
            chunks = tx.documents.chunks(document.id)
        passage, place = chunk_on_page(chunks, number, index)
        self._originals.check(document)
        return self._thread.submit(self._draw, document, number, passage, place, words).result()

    def _draw(self, document: Document, number: int, passage: str, place: float, words: Sequence[str]) -> bytes:
        draw = partial(self._sandbox.draw_page, number=number, passage=passage, place=place, words=words)
        return self._asked(document, number, f"Page {number} cannot be drawn", draw)

    def thumbnail(self, document: Document) -> bytes:
        """Return a picture, or the first page of a PDF, in small, as WebP. kb keeps it.

        Raises:
            NotFound: the document has no picture, its file is not kept, or it cannot be drawn.
            Stopped: the engine stops.
        """
        if document.doc_type not in PICTURED:
            raise NotFound(f"Document {document.id} is neither a picture nor a PDF.")
        self._originals.check(document)
        kept = self._originals.thumbnails.get(document.content_hash)
        if kept is None:
            kept = self._thread.submit(self._thumbnail, document).result()
        if not kept:
            raise NotFound(f"{NO_THUMBNAIL}.")
        return kept

    def _thumbnail(self, document: Document) -> bytes:
        try:
            content = self._asked(document, SMALL, NO_THUMBNAIL, self._sandbox.thumbnail)
        except NotFound:
            if (document.content_hash, SMALL) in self._slow:  # perhaps only now
                raise
            content = b""
        self._originals.thumbnails.put(document.content_hash, content)
        if not self._originals.has(document.content_hash):  # it was deleted meanwhile
            self._originals.thumbnails.forget([document.content_hash])
        return content

    def count(self, document: Document) -> int:
        """Return the number of pages. Raises the same errors as `draw`."""
        if document.doc_type != "pdf":
            raise NotPaged
        known = self._counts.get(document.content_hash)
        if known is None:
            self._originals.check(document)
            known = self._thread.submit(self._count, document).result()
        return known

    def _count(self, document: Document) -> int:
        number = self._asked(document, ALL, "Its pages cannot be counted", self._sandbox.count_pages)
        self._counts[document.content_hash] = number
        while len(self._counts) > MAX_COUNTS:
            self._counts.popitem(last=False)
        return number

    def _asked(self, document: Document, number: int, failure: str, ask: Callable[[Path], Answer]) -> Answer:
        """Return the answer of the parser for a page; a page that took too long is not tried again."""
        limits, page = self._sandbox.limits, (document.content_hash, number)
        too_slow = f"{failure}: drawing took more than {limits.seconds:g} seconds."
        if page in self._slow:
            raise NotFound(too_slow)
        try:
            return ask(self._path(document.content_hash))
        except Unreadable as error:
            if error.detail != limits.too_slow:
                raise NotFound(f"{failure}: {error.detail}.") from None
            self._slow.append(page)
            raise NotFound(too_slow) from None
        except FileNotFoundError:  # it has just been deleted
            raise NotFound(f"kb no longer has the file for document {document.id}.") from None
        finally:
            self._used = time.monotonic()
            self._await_idle()

    def _path(self, content_hash: str) -> Path:
        """Return a local path of a file; the last file stays there because a reader usually requests its next page."""
        if self._held is None or self._held[0] != content_hash:
            self._release_file()
            self._held = content_hash, self._file.enter_context(self._originals.local(content_hash))
        return self._held[1]

    def _release_file(self) -> None:
        self._held = None
        self._file.close()

    def _close(self) -> None:
        self._release_file()
        self._sandbox.close()

    def _await_idle(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = Timer(IDLE_SECONDS, self._end_idle)
        self._timer.daemon = True
        self._timer.start()

    def _end_idle(self) -> None:
        try:
            self._thread.submit(self._close_if_idle)
        except RuntimeError:  # the engine stops
            return

    def _close_if_idle(self) -> None:
        if time.monotonic() - self._used >= IDLE_SECONDS:
            self._close()


def chunk_on_page(chunks: list[Chunk], number: int, index: int | None) -> tuple[str, float]:
    """Return the text of a chunk, and how far down its page's text it begins, from 0 to 1.

    Raises:
        NotFound: the chunk does not exist.
    """
    if index is None:
        return "", 0
    if index >= len(chunks):
        raise NotFound(f"chunk: the document has {len(chunks)} chunks, counted from 0.")
    chunk = chunks[index]
    if chunk.place.page != number:
        return "", 0
    on_page = [chunk for chunk in chunks if chunk.place.page == number]
    length = sum(len(chunk.text) for chunk in on_page)
    before = sum(len(chunk.text) for chunk in on_page if chunk.index < index)
    return chunk.text, before / length
