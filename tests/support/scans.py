"""Pictures of text, as scanners and cameras take them, made from known text."""

from __future__ import annotations

import ctypes
import io
import random
import textwrap
from contextlib import closing

import pypdfium2
from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIZE, MARGIN, TYPE_SIZE = (1240, 900), 90, 30


def page(text, *, angle=0.0):
    """A page with a text in black on white, turned a little."""
    picture = Image.new("L", SIZE, 255)
    font = ImageFont.load_default(TYPE_SIZE)
    ImageDraw.Draw(picture).multiline_text((MARGIN, MARGIN), textwrap.fill(text, 72), 0, font, spacing=12)
    return picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)


def photo(text, seed):
    """A JPEG of a page: turned, out of focus, in uneven light, with noise."""
    chance = random.Random(seed)
    picture = page(text, angle=chance.uniform(-2, 2)).filter(ImageFilter.GaussianBlur(chance.uniform(0.3, 0.9)))
    light = Image.linear_gradient("L").resize(SIZE).rotate(chance.choice((0, 90, 180))).resize(SIZE)
    picture = Image.blend(picture, light, chance.uniform(0.1, 0.25))
    noise = Image.effect_noise(SIZE, chance.uniform(15, 30))
    file = io.BytesIO()
    Image.blend(picture, noise, 0.12).save(file, "JPEG", quality=chance.randint(55, 80))
    return file.getvalue()


def scan(*texts, seed=0):
    """A PDF of pages without text, only their pictures."""
    chance = random.Random(seed)
    first, *rest = (page(text, angle=chance.uniform(-1, 1)) for text in texts)
    file = io.BytesIO()
    first.save(file, "PDF", resolution=150, save_all=True, append_images=rest, quality=70)
    return file.getvalue()


def bound(*files):
    """A PDF of the pages of several."""
    with pypdfium2.PdfDocument.new() as whole:
        for file in files:
            with pypdfium2.PdfDocument(file) as part:
                whole.import_pages(part)
        out = io.BytesIO()
        whole.save(out)
    return out.getvalue()


def stamp(file, text):
    """A PDF with a line printed on its first page."""
    with pypdfium2.PdfDocument(file) as document, closing(document[0]) as page:
        item = pypdfium2.raw.FPDFPageObj_NewTextObj(document, b"Helvetica", 9.0)
        units = (text + "\0").encode("utf-16-le")
        pypdfium2.raw.FPDFText_SetText(item, ctypes.cast(units, ctypes.POINTER(ctypes.c_ushort)))
        pypdfium2.raw.FPDFPageObj_Transform(item, 1, 0, 0, 1, 20, 20)
        pypdfium2.raw.FPDFPage_InsertObject(page, item)
        page.gen_content()
        out = io.BytesIO()
        document.save(out)
    return out.getvalue()
