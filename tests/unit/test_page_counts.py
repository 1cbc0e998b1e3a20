"""How many pages a PDF has, where they cannot be counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kb.api.errors import DiskFault, NotFound, Unreadable
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures
from kb.parser.sandbox import Limits
from kb.web.documents import page_count
from tests.support.blobs import kept_at


def test_a_pdf_whose_pages_take_too_long_to_count_is_not_read_again(tmp_path, monkeypatch):
    tried = []

    def count_pages(sandbox, path):
        tried.append(path)
        raise Unreadable(sandbox.limits.too_slow)

    monkeypatch.setattr("kb.parser.sandbox.Sandbox.count_pages", count_pages)
    originals = Originals(FolderBlobs(tmp_path), keep=True)
    document = SimpleNamespace(id=1, doc_type="pdf", content_hash="ab" * 32)
    kept_at(originals, document.content_hash).parent.mkdir(parents=True)
    kept_at(originals, document.content_hash).touch()
    with PagePictures(None, originals, Limits(seconds=5)) as pages:
        for _ in range(2):
            with pytest.raises(NotFound, match="more than 5 seconds"):
                pages.count(document)
    assert len(tried) == 1


async def test_the_page_of_a_document_whose_pages_cannot_be_counted_is_shown_all_the_same():
    async def pages(document_id):
        raise DiskFault(f"document {document_id}")

    assert await page_count(SimpleNamespace(engine=SimpleNamespace(pages=pages)), 1, known=7) == 7
