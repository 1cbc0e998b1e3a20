"""Thumbnails of pictures and of the first pages of PDFs: made once, in the confined process, and deleted with the file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from types import SimpleNamespace

import pytest
from PIL import Image

from kb.api.errors import NotFound
from kb.blobs.folder import FolderBlobs
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures
from kb.documents.thumbnails import MOST, Thumbnails
from kb.parser.sandbox import Limits
from tests.store.test_store import content
from tests.support.blobs import kept_at
from tests.support.pdf import pdf


def picture(kind, size=(800, 400), mode="RGB", **options):
    with BytesIO() as file:
        Image.new(mode, size, "navy" if mode == "RGB" else None).save(file, kind, **options)
        return file.getvalue()


def turned():
    """A photo of a camera that was held upright."""
    photo = Image.new("RGB", (800, 400), "navy")
    photo.getexif()[0x0112] = 6
    with BytesIO() as file:
        photo.save(file, "JPEG", exif=photo.getexif())
        return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("thumbnails")


@pytest.fixture(scope="module")
def originals(folder):
    return Originals(FolderBlobs(folder), Thumbnails(folder / "thumbnails"), keep=True)


@pytest.fixture(scope="module")
def pages(originals):
    with PagePictures(None, originals, Limits(seconds=20, thumbnails=True)) as pages:
        yield pages


def kept(originals, data, doc_type="image"):
    """A document with a file."""
    document = SimpleNamespace(id=1, doc_type=doc_type, content_hash=sha256(data).hexdigest())
    file = kept_at(originals, document.content_hash)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return document


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (picture("PNG"), (192, 96)),
        (picture("PNG", mode="RGBA"), (192, 96)),
        (picture("GIF", mode="P"), (192, 96)),
        (picture("JPEG", (90, 60)), (90, 60)),
        (turned(), (96, 192)),
        (picture("WEBP", (10, 4000)), (1, 192)),
        (picture("TIFF", mode="CMYK"), (192, 96)),
        (picture("PNG", mode="I;16"), (192, 96)),
        (pdf("The lease ends in March 2028."), (149, 192)),
    ],
)
def test_a_thumbnail_is_small_upright_and_made_once(pages, originals, monkeypatch, data, size):
    document = kept(originals, data, "pdf" if data.startswith(b"%PDF") else "image")
    small = pages.thumbnail(document)
    with Image.open(BytesIO(small)) as shown:
        assert (shown.format, shown.size) == ("WEBP", size)
    assert len(small) < 20_000
    monkeypatch.setattr(pages, "_thumbnail", None)
    assert pages.thumbnail(document) == small


BOMB = picture("PNG").replace((800).to_bytes(4) + (400).to_bytes(4), (60_000).to_bytes(4) * 2)


@pytest.mark.parametrize("data", [b"", b"no picture", picture("PNG")[:60], b"%PDF-1.7 broken", BOMB, b"<svg/>"])
def test_what_cannot_be_drawn_is_tried_once(pages, originals, monkeypatch, data):
    document = kept(originals, data)
    for _ in range(2):
        with pytest.raises(NotFound, match="no thumbnail"):
            pages.thumbnail(document)
        monkeypatch.setattr(pages, "_thumbnail", None)


@pytest.mark.parametrize("data", [picture("PNG", (30, 30)), b"no picture at all"])
def test_of_a_file_that_is_deleted_while_it_is_drawn_nothing_stays(pages, originals, monkeypatch, data):
    document, draw = kept(originals, data), pages._sandbox.thumbnail

    def delete_and_draw(path):
        try:
            return draw(path)
        finally:
            kept_at(originals, document.content_hash).unlink()
            originals.thumbnails.forget([document.content_hash])

    monkeypatch.setattr(pages._sandbox, "thumbnail", delete_and_draw)
    with suppress(NotFound):
        pages.thumbnail(document)
    assert originals.thumbnails.get(document.content_hash) is None


def test_after_a_crash_in_between_both_the_file_and_its_thumbnail_go(make_store, folder, monkeypatch):
    originals = Originals(FolderBlobs(folder), Thumbnails(folder / "thumbnails"), keep=True)
    data = picture("PNG", (31, 31))
    digest = kept(originals, data).content_hash
    originals.thumbnails.put(digest, b"small")
    with make_store(dimensions=8) as store:
        with store.write() as tx:
            file = replace(content("a picture", doc_type="image"), content_hash=digest)
            document_id = tx.documents.add(file, None, ())
        with store.write() as tx:
            tx.documents.delete(document_id)
        with monkeypatch.context() as patch:
            patch.setattr(originals.thumbnails, "forget", crash)
            with pytest.raises(KeyboardInterrupt):
                originals.sweep(store)
        originals.sweep(store)
    assert not originals.has(digest)
    assert originals.thumbnails.get(digest) is None


def crash(_):
    raise KeyboardInterrupt


def test_only_pictures_and_pdfs_whose_file_is_kept_have_one(pages, originals):
    with pytest.raises(NotFound, match="neither"):
        pages.thumbnail(kept(originals, b"text", "text"))
    with pytest.raises(NotFound, match="no file"):
        pages.thumbnail(SimpleNamespace(id=1, doc_type="pdf", content_hash="0" * 64))


def test_thumbnails_are_forgotten_with_their_files_and_take_little_room(tmp_path):
    thumbnails = Thumbnails(tmp_path)
    names = [f"{0:02x}{number:062x}" for number in range(MOST + 20)]
    for name in names:
        thumbnails.put(name, b"small")
    assert thumbnails.get(names[-1]) == b"small"
    assert len(list((tmp_path / "00").iterdir())) == MOST
    thumbnails.forget([names[-1], "../../secret", names[0]])
    assert thumbnails.get(names[-1]) is None
    (tmp_path / "11").write_text("not a folder")
    thumbnails.put("11" * 32, b"small")
    assert thumbnails.get("11" * 32) is None
    assert Thumbnails().get(names[-2]) is None
