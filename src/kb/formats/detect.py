"""What a file is, by its content; its name decides only between kinds of text."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import PurePath
from typing import Final

from kb.api.errors import Unreadable
from kb.formats.sniff import looks_delimited
from kb.formats.text.encoding import NOT_TEXT, decode

_BEFORE_PDF: Final = b"\xef\xbb\xbf \t\r\n\f\0"
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_MARKDOWN: Final = {".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd"}
_HTML: Final = {".html", ".htm", ".xhtml", ".shtml"}
_XML: Final = {".xml", ".rss", ".atom", ".rdf"}
_DELIMITED: Final = {".csv", ".tsv", ".tab"}
_JSON: Final = {".json", ".jsonl", ".ndjson", ".geojson", ".webmanifest"}
# Where pages of HTML are made from; one that was saved from a browser is a page, whatever its address was.
_TEMPLATES: Final = {".php", ".phtml", ".jsp", ".asp", ".aspx", ".erb", ".vue", ".svelte", ".astro"}
_CODE: Final = {
    *(".ada", ".asm", ".awk", ".bash", ".bat", ".c", ".cc", ".cjs", ".clj", ".cljs", ".cmake", ".cmd", ".cpp", ".cs"),
    *(".css", ".cu", ".cxx", ".d", ".dart", ".el", ".elm", ".erl", ".ex", ".exs", ".f", ".f90", ".fish", ".fs", ".fsx"),
    *(".glsl", ".go", ".gradle", ".graphql", ".groovy", ".h", ".hcl", ".hh", ".hpp", ".hs", ".hxx", ".ipp", ".java"),
    *(".jl", ".js", ".jsx", ".kt", ".kts", ".less", ".lisp", ".lua", ".m", ".mjs", ".mk", ".ml", ".mli", ".mm", ".nim"),
    *(".nix", ".pas", ".pl", ".pm", ".proto", ".ps1", ".psm1", ".py", ".pyi", ".pyx", ".r", ".rb", ".rkt", ".rs", ".s"),
    *(".sass", ".scala", ".scm", ".scss", ".sh", ".sol", ".sql", ".sv", ".swift", ".tcl", ".tf", ".ts", ".tsx", ".v"),
    *(".vb", ".vbs", ".vhd", ".vhdl", ".wgsl", ".zig", ".zsh"),
}
_CODE_NAMES: Final = {"makefile", "gnumakefile", "dockerfile", "containerfile", "rakefile", "gemfile", "jenkinsfile"}
_SCRIPT: Final = re.compile(r"#!\s*/\S")
# Names that say nothing about what kind of text a text is.
_TELLS_NOTHING: Final = {
    *("", ".bin", ".dat", ".tmp", ".pdf", ".doc", ".docx", ".pptx", ".xlsx", ".xls", ".epub", ".msg", ".eml"),
    *_HTML,
}

_HTML_DOCUMENT: Final = re.compile(
    r"(?is)(?>\s|<!--.*?-->|<\?.*?\?>|<!doctype\s+(?!html)[^>]*>)*+<(?:!doctype\s+html|html|head|body)[\s>/]"
)
_HTML_FRAGMENT: Final = re.compile(
    r"(?i)\s*+<(?:p|div|h[1-6]|table|ul|ol|dl|section|article|main|header|nav|span|center|font|title|meta|br)[\s>/]"
)
_XML_DOCUMENT: Final = re.compile(r"\s*+<(?:\?xml\s|rss[\s>]|feed[\s>]|rdf:RDF[\s>])")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKDOWN_HEADING: Final = re.compile(r"(?m)^#{1,6} \S")
_MORE_MARKDOWN: Final = re.compile(r"(?m)^#{2,6} \S|^```|\]\(\S+\)|^[-*] \S|\*\*\S")

_HEADER: Final = re.compile(rb"([!-9;-~]+):")
_MAIL_HEADERS: Final = {b"message-id", b"mime-version", b"received", b"return-path", b"delivered-to"}
_NOTEBOOK: Final = re.compile(r'"nbformat"\s*:\s*\d')

_OFFICE_KINDS: Final = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
_MIMETYPE_KINDS: Final = {
    "application/epub+zip": "epub",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
}
_UNREAD_ZIPS: Final = {
    "visio/": "Visio files are not read",
    "META-INF/manifest.xml": "OpenDocument files other than texts, spreadsheets and presentations are not read",
}
_OLE_KINDS: Final = {"__substg1.0_": "msg", "Workbook": "xls"}
_UNREAD_OLE: Final = {
    "EncryptedPackage": "the Office document is encrypted: it needs a password to be read",
    "WordDocument": "Word 97-2003 (.doc) files are not read: save the file as .docx",
    "PowerPoint Document": "PowerPoint 97-2003 (.ppt) files are not read: save the file as PDF",
}
_MEDIA: Final = {
    "image": "it is an image ({}): text in images is not read, OCR is not done",
    "audio": "it is a sound recording ({}): speech is not read",
    "video": "it is a video ({}): videos are not read",
    "font": "it is a font ({})",
}
_NAMED: Final = {
    ".pdf": "a PDF",
    ".docx": "a Word document",
    ".pptx": "a PowerPoint presentation",
    ".xlsx": "an Excel workbook",
    ".epub": "an EPUB book",
    ".odt": "an OpenDocument text",
    ".msg": "an Outlook message",
    ".rtf": "rich text",
}
_ARCHIVE: Final = re.compile(r"gzip|bzip2|x-xz|7z|rar|x-tar|zstd|compress")


def detect(data: bytes, filename: str) -> str:
    """The kind of a file: a key of `kb.formats.registry.READERS`.

    Raises:
        Unreadable: the file is empty, or of a kind that has no reader.
    """
    if not data:
        raise Unreadable("the file is empty")
    if data[:1024].lstrip(_BEFORE_PDF).startswith(b"%PDF-"):
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return _kind_in_zip(data)
    if data.startswith(_OLE):
        return _kind_in_ole(data)
    if data.startswith(b"{\\rtf"):
        return "rtf"
    path = PurePath(filename.lower())
    if _is_mail(data, path.suffix):
        return "eml"
    try:
        return _kind_of_text(decode(data), path)
    except Unreadable:
        return _kind_of_binary(data, path.suffix)


def _is_mail(data: bytes, suffix: str) -> bool:
    """Whether a file begins with the headers of a message."""
    names = set()
    for line in data[:65536].lstrip(b"\xef\xbb\xbf\r\n").splitlines():
        header = _HEADER.match(line)
        if header:
            names.add(header[1].lower())
        elif not (names and line.startswith((b" ", b"\t"))):
            break
    return bool(names) if suffix == ".eml" else b"from" in names and bool(names & _MAIL_HEADERS)


def _kind_of_text(text: str, path: PurePath) -> str:
    suffix = path.suffix
    if suffix in _CODE or path.name in _CODE_NAMES:
        return "code"
    if _HTML_DOCUMENT.match(text):
        return "html"
    if _XML_DOCUMENT.match(text) or (suffix in _XML and _TAG.match(text.lstrip())):
        return "xml"
    if suffix in _MARKDOWN:
        return "markdown"
    if suffix in _HTML and _TAG.search(text):
        return "html"
    if suffix in _DELIMITED:
        return "csv"
    if suffix in _TEMPLATES or _SCRIPT.match(text):
        return "code"
    if suffix in _JSON | {".ipynb"} | _TELLS_NOTHING and (kind := _kind_of_json(text)):
        return kind
    return _guessed_kind(text) if suffix in _TELLS_NOTHING else "text"


def _kind_of_json(text: str) -> str | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except RecursionError:
        return "json"
    except ValueError:  # one value a line, or JSON with comments
        return "json" if text.lstrip()[1:].lstrip()[:1] in ('"', "}", "]", "{", "[") else None
    return "notebook" if _NOTEBOOK.search(text) and '"cells"' in text else "json"


def _guessed_kind(text: str) -> str:
    if _HTML_FRAGMENT.match(text):
        return "html"
    if _MARKDOWN_HEADING.search(text) and len(_MORE_MARKDOWN.findall(text)) > 1:
        return "markdown"
    return "csv" if looks_delimited(text) else "text"


def _kind_in_zip(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            mimetype = _mimetype(archive)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, OSError, ValueError):
        raise Unreadable(
            "the file is damaged or cut short: it begins like a zip archive (as Word files do) but is not a whole one"
        ) from None
    for folder, kind in _OFFICE_KINDS.items():
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return kind
    for beginning, kind in _MIMETYPE_KINDS.items():
        if mimetype.startswith(beginning):
            return kind
    if "META-INF/container.xml" in names:
        return "epub"
    raise Unreadable(_reason_for_zip(names))


def _mimetype(archive: zipfile.ZipFile) -> str:
    """What EPUB and OpenDocument say of themselves in their first, uncompressed entry."""
    first = archive.infolist()[:1]
    if not first or first[0].filename != "mimetype" or first[0].file_size > 100 or first[0].flag_bits & 1:
        return ""
    with archive.open(first[0]) as entry:
        return entry.read().decode("ascii", "replace")


def _reason_for_zip(names: list[str]) -> str:
    for beginning, reason in _UNREAD_ZIPS.items():
        if any(name.startswith(beginning) for name in names):
            return reason
    return "it is a zip archive: send the files in it one by one"


def _kind_in_ole(data: bytes) -> str:
    for stream, kind in _OLE_KINDS.items():
        if stream.encode("utf-16-le") in data:
            return kind
    for stream, reason in _UNREAD_OLE.items():
        if stream.encode("utf-16-le") in data:
            raise Unreadable(reason)
    raise Unreadable("it is a Microsoft OLE file of a kind that is not read")


def _kind_of_binary(data: bytes, suffix: str) -> str:
    if b"%PDF-" in data[:1024]:  # behind some junk, which PDF readers overlook
        return "pdf"
    raise Unreadable(_reason_for_binary(data, suffix))


def _reason_for_binary(data: bytes, suffix: str) -> str:
    if data.startswith((b"\x7fELF", b"MZ")):
        return "it is a program, not a document"
    for reason in map(_reason_for_mime, _mime_types(data)):
        if reason:
            return reason
    named = _NAMED.get(suffix)
    return f"the name ends in {suffix}, but the content is not {named}: {NOT_TEXT}" if named else NOT_TEXT


def _reason_for_mime(mime: str) -> str | None:
    family = mime.partition("/")[0]
    if family in _MEDIA:
        return _MEDIA[family].format(mime)
    if _ARCHIVE.search(mime):
        return f"it is an archive or compressed file ({mime}): send the files in it one by one"
    return None


def _mime_types(data: bytes) -> list[str]:
    import puremagic

    try:
        matches = puremagic.magic_string(data)
    except (puremagic.PureError, ValueError):
        return []
    # Below this the signature is a byte or two, which chance finds in any binary data.
    return [match.mime_type for match in matches if match.confidence >= 0.3]
