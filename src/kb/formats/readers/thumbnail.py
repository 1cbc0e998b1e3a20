"""A small picture of a picture, or of the first page of a PDF."""

from __future__ import annotations

import struct
from contextlib import closing
from importlib import import_module
from io import BytesIO
from typing import Final

import pypdfium2
from PIL import Image, ImageOps

from kb.api.errors import Unreadable
from kb.formats.readers.pdf import PDFIUM, opened

SIDE: Final = 192
"""The longer side in pixels."""

FORMATS: Final = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")


def load() -> None:
    """Load the decoders, because a confined process cannot."""
    for name in ("Avif", "Bmp", "Gif", "Jpeg", "Mpo", "Png", "Tiff", "WebP"):
        import_module(f"PIL.{name}ImagePlugin")


def thumbnail(data: bytes) -> bytes:
    """Return a file in small, as WebP.

    Raises:
        Unreadable: the file is neither a PDF nor a picture of a known format, or it is damaged.
    """
    try:
        picture = _first_page(data) if data.startswith(b"%PDF-") else _picture(data)
        with BytesIO() as file:
            picture.save(file, "WEBP", quality=75)
            return file.getvalue()
    except (OSError, ValueError, SyntaxError, struct.error, Image.DecompressionBombError) as error:
        raise Unreadable("the picture is damaged, too large, or of another format") from error


def _first_page(data: bytes) -> Image.Image:
    with PDFIUM, opened(data) as document:
        try:
            with closing(document[0]) as page, closing(page.render(scale=SIDE / max(*page.get_size(), 1))) as bitmap:
                small: Image.Image = bitmap.to_pil().convert("RGB")
                return small
        except (pypdfium2.PdfiumError, IndexError) as error:
            raise Unreadable("page 1 is damaged") from error


def _picture(data: bytes) -> Image.Image:
    with Image.open(BytesIO(data), formats=FORMATS) as picture:
        picture.draft("RGB", (2 * SIDE, 2 * SIDE))  # a JPEG is decoded in small
        upright = ImageOps.exif_transpose(picture)
        if upright.mode.startswith("I"):  # 16 bits of grey, which only a scale turns into 8
            upright = upright.point(lambda value: value * (1 / 256)).convert("L")
        upright.thumbnail((SIDE, SIDE))
        return upright.convert("RGBA" if upright.has_transparency_data else "RGB")
