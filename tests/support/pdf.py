"""Small PDFs, made by hand."""

from __future__ import annotations


def pdf(*pages):
    """A PDF with one line of text on each page."""
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    font = 3 + 2 * len(pages)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    for number, text in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * number} 0 R"
            f" /Resources << /Font << /F1 {font} 0 R >> >> >>"
        )
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    return _with_table(objects)


def drawn_pdf(*pages, size=(595, 842)):
    """A PDF of pages, each a list of texts with their places: x, y, the text, and perhaps the size of its letters."""
    font = 3 + 2 * len(pages)
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    for number, texts in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {4 + 2 * number} 0 R"
            f" /Resources << /Font << /F1 {font} 0 R >> >> >>"
        )
        shown = " ".join(f"/F1 {[*more, 10][0]} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj" for x, y, text, *more in texts)
        objects.append(f"<< /Length {len(shown) + 6} >>\nstream\nBT {shown} ET\nendstream")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    return _with_table(objects)


def slow_pdf(text):
    """A page with a line of text that takes minutes to draw: it is painted over very often."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET " + "/S sh " * 20_000
    return _with_table(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            " /Resources << /Font << /F1 5 0 R >> /Shading << /S 6 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            "<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 612 792] /Extend [true true]"
            " /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1 >> >>",
        ]
    )


def filled_form(label, value):
    """A page with a field whose value no program has drawn."""
    stream = f"BT /F1 12 Tf 72 720 Td ({label}) Tj ET"
    return _with_table(
        [
            "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DR << /Font << /F1 5 0 R >> >>"
            " /DA (/F1 12 Tf 0 g) /NeedAppearances true >> >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            " /Resources << /Font << /F1 5 0 R >> >> /Annots [6 0 R] >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V ({value}) /Rect [120 715 300 735] >>",
        ]
    )


def _with_table(objects):
    pieces, offsets, length = [b"%PDF-1.4\n"], [], 9
    for number, content in enumerate(objects, 1):
        offsets.append(length)
        pieces.append(f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1"))
        length += len(pieces[-1])
    body = b"".join(pieces)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    table += "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + (table + trailer).encode()


def with_files(text, files=(), pinned=(), comments=(), repeated=1):
    """A page with files in the document, each named so often, and with files and comments pinned to the page."""
    objects = ["", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "", ""]

    def add(content):
        objects.append(content)
        return f"{len(objects)} 0 R"

    def spec(name, content):
        stream = add(f"<< /Type /EmbeddedFile /Length {len(content)} >>\nstream\n{content}\nendstream")
        return add(f"<< /Type /Filespec /F ({name}) /UF ({name}) /EF << /F {stream} >> >>")

    font = add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    specs = [(name, spec(name, content)) for name, content in files]
    names = " ".join(f"({number:06}{name}) {place}" for number in range(repeated) for name, place in specs)
    annotations = [
        f"<< /Type /Annot /Subtype /FileAttachment /Rect [9 9 20 20] /FS {spec(name, content)} >>"
        for name, content in pinned
    ]
    annotations += [
        f"<< /Type /Annot /Subtype /Text /Rect [9 9 20 20] /Contents ({comment}) >>" for comment in comments
    ]
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [{names}] >> >> >>"
    objects[2] = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        f" /Resources << /Font << /F1 {font} >> >> /Annots [{' '.join(map(add, annotations))}] >>"
    )
    stream = text if text.startswith("BT") else f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects[3] = f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"
    return _with_table(objects)
