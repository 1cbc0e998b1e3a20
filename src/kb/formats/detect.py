"""The type of a file, by its content; its name decides only between kinds of text."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from pathlib import PurePath
from typing import Final, cast, get_args

from kb.api.errors import Unreadable
from kb.api.file_types import IMAGE
from kb.api.job_error_phrases import NO_DOC, NO_OCR, NO_PPT, NO_SPEECH, NO_VIDEO, NO_WPD
from kb.formats.containers.flat_opendocument import flat_mimetype
from kb.formats.containers.mailbox import begins_message, is_mailbox, message_in, without_separator
from kb.formats.containers.map_archive import map_in
from kb.formats.containers.ole import OLE_SIGNATURE, WORKBOOKS, is_stream, open_ole
from kb.formats.containers.part_names import plain_name
from kb.formats.delimiter import looks_delimited
from kb.formats.installed_types import ADDED, FORMATS
from kb.formats.text.encoding import NOT_TEXT, as_utf8, decode
from kb.formats.text.external_types import Kind, Opaque, is_picture

ENCRYPTED: Final = "it is encrypted: only a program with its key can read it"
_ZIP: Final = b"PK\x03\x04"
_DOCUMENTS: Final = (_ZIP, OLE_SIGNATURE, b"%PDF-", b"{\\rtf")
_PDF_PADDING: Final = b"\xef\xbb\xbf \t\r\n\f\0"

_SUFFIXES: Final = {doc_type: frozenset(format_.suffixes) for doc_type, format_ in FORMATS.items()}
# Templates of HTML pages. A page saved from a browser is HTML, even if its address ends like this.
_TEMPLATES: Final = {".php", ".phtml", ".jsp", ".asp", ".aspx", ".erb", ".vue", ".svelte", ".astro"}
_FLAT: Final = {".fodt", ".fods", ".fodp"}
_CANVAS: Final = {".canvas"}  # its text becomes Markdown
_CODE_NAMES: Final = {"makefile", "gnumakefile", "dockerfile", "containerfile", "rakefile", "gemfile", "jenkinsfile"}
_SCRIPT: Final = re.compile(r"#!\s*/\S")
# Suffixes that do not show the kind of text.
_AMBIGUOUS: Final = {
    *("", ".bin", ".dat", ".tmp", ".pdf", ".doc", ".docx", ".pptx", ".xlsx", ".xls", ".epub", ".msg", ".eml", ".mbox"),
    *_SUFFIXES["html"],
}

_HTML_DOCUMENT: Final = re.compile(
    r"(?is)(?>\s|<!--.*?-->|<\?.*?\?>|<!doctype\s+(?!html)[^>]*>)*+<(?:!doctype\s+html|html|head|body)[\s>/]"
)
_HTML_FRAGMENT: Final = re.compile(
    r"(?i)\s*+<(?:p|div|h[1-6]|table|ul|ol|dl|section|article|main|header|nav|span|center|font|title|meta|br)[\s>/]"
)
_XML_DOCUMENT: Final = re.compile(r"\s*+<(?:\?xml\s|rss[\s>]|feed[\s>]|rdf:RDF[\s>])")
_EVERNOTE: Final = re.compile(
    r"(?:\s++|<\?[^>]{0,999}>|<!--[^>]{0,999}-->|<!DOCTYPE\s[^>]{0,999}>){0,9}<en-export[\s>]"
)
_ITEMS: Final = re.compile(r"(?i)[\ufeff\s]{0,99}BEGIN:(VCALENDAR|VEVENT|VTODO|VJOURNAL|VCARD)[ \t]*\n")
_END_OF_HEADERS: Final = re.compile(rb"\r?\n\r?\n")
_PAGE_TYPE: Final = re.compile(rb"(?im)^Content-Type:\s*(?:multipart/(?:related|alternative)|text/html)")
_SAVED_BY: Final = re.compile(rb"(?im)^(?:From:\s*[\"<]{0,2}Saved by [^@\r\n]*$|Snapshot-Content-Location:)")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>")
_MARKDOWN_HEADING: Final = re.compile(r"(?m)^#{1,6} \S")
_MORE_MARKDOWN: Final = re.compile(r"(?m)^#{2,6} \S|^```|\]\([^)\s\]]+\)|^[-*] \S|\*\*\S")

TNEF_SIGNATURE: Final = b"\x78\x9f\x3e\x22"
_HEADER: Final = re.compile(rb"([!-9;-~]+):")
_TRANSPORT_HEADERS: Final = {b"message-id", b"mime-version", b"received", b"return-path", b"delivered-to"}
_MAIL_HEADERS: Final = _TRANSPORT_HEADERS | {b"from", b"to", b"subject", b"date", b"content-type"}
PGP_MESSAGE: Final = "-----BEGIN PGP MESSAGE-----"
# The names of encrypted content in CMS: EnvelopedData and AuthEnvelopedData.
_ENVELOPES: Final = (bytes.fromhex("06092a864886f70d010703"), bytes.fromhex("060b2a864886f70d0109100117"))
_LONGEST_MIMETYPE: Final = 100
_NOTEBOOK: Final = re.compile(r'"nbformat"\s*:\s*\d')

_OFFICE_TYPES: Final = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
_MIMETYPE_TYPES: Final = {
    "application/epub+zip": "epub",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
}
_UNSUPPORTED_ZIPS: Final = {
    "visio/": "kb does not read Visio files",
    "META-INF/manifest.xml": "kb reads only OpenDocument texts, spreadsheets and presentations",
}
_OLE_TYPES: Final = {"__properties_version1.0": "msg", **dict.fromkeys(WORKBOOKS, "xls")}
_UNSUPPORTED_OLE: Final = {
    "EncryptedPackage": "the Office document is encrypted and needs a password",
    "\tDRMContent": "the document is protected by rights management: only people whom its sender allowed can read it",
}
_OLD_OLE: Final[dict[str, tuple[str, Kind]]] = {
    "WordDocument": (f"kb itself does not read Word 97-2003 (.doc) files: {NO_DOC}", "doc"),
    "PowerPoint Document": (f"kb itself does not read PowerPoint 97-2003 (.ppt) files: {NO_PPT}", "ppt"),
}
_OLD_FILES: Final[dict[bytes, tuple[str, Kind]]] = {
    b"\xffWPC": (f"kb itself does not read WordPerfect files: {NO_WPD}", "wpd"),
    b"\xdb\xa5-\0": (f"kb itself does not read Word 2 (.doc) files: {NO_DOC}", "doc"),
    b"\x31\xbe\0\0": (f"kb itself does not read Word for DOS or Windows Write files: {NO_DOC}", "doc"),
}
_MEDIA: Final = {
    "image": "it is an image ({}): kb does not read text in images, " + NO_OCR,
    "audio": "it is a sound recording ({}): " + NO_SPEECH,
    "video": "it is a video ({}): " + NO_VIDEO,
    "font": "it is a font ({})",
}
_BINARY: Final = ("docx", "epub", "msg", "odp", "ods", "odt", "pdf", "pptx", "rtf", "xls", "xlsx")
_TITLES: Final = {suffix: FORMATS[doc_type].title for doc_type in _BINARY for suffix in FORMATS[doc_type].suffixes}
_ARCHIVE: Final = re.compile(r"gzip|bzip2|x-xz|7z|rar|x-tar|zstd|compress")


def detect(data: bytes, filename: str) -> str:
    """Return the type of a file, a key of `FORMATS`.

    Raises:
        Unreadable: the file is empty, or of a format that is not read.
    """
    if not data:
        raise Unreadable("the file is empty")
    path = PurePath(filename.lower())
    added = ADDED.get(path.suffix)
    try:
        doc_type = _own_type(data, path)
    except Unreadable:
        if added:
            return added
        raise
    return added if added and FORMATS[doc_type].is_text else doc_type


def _own_type(data: bytes, path: PurePath) -> str:
    """Return the type of a file, one of kb's own; raise as `detect` does."""
    if data[:1024].lstrip(_PDF_PADDING).startswith(b"%PDF-"):
        return "pdf"
    if data.startswith(_ZIP):
        return _type_in_zip(data)
    if data.startswith(OLE_SIGNATURE):
        return _type_in_ole(data)
    if data.startswith(b"{\\rtf"):
        return "rtf"
    if data.startswith(TNEF_SIGNATURE):
        return "tnef"
    if _is_saved_page(data, path.suffix):
        return "mht"
    if _is_mail(message_in(data), path.suffix):
        return "mbox" if is_mailbox(as_utf8(data)) else "eml"
    try:
        text = decode(data)
    except Unreadable:
        if b"%PDF-" in data[:1024]:  # after some junk, which PDF readers ignore
            return "pdf"
        if is_picture(data) and any(mime.startswith("image/") for mime in _mime_types(data)):
            return IMAGE
        raise Unreadable(_reason_for_binary(data, path.suffix)) from None
    return _type_of_text(text, path)


def is_envelope(data: bytes) -> bool:
    return any(mark in data[:64] for mark in _ENVELOPES)


def is_media(data: bytes, called: str) -> bool:
    """Return whether a file is a picture, sound, a film or a font, which contain no text.

    `called` is the media type that came with it.
    """
    if data.startswith(_DOCUMENTS):
        return False
    if called.startswith(("image/", "audio/", "font/")):  # programs use "video/mp2t" for TypeScript
        return True
    try:
        decode(data[:4096])
    except Unreadable:
        return any(mime.partition("/")[0] in _MEDIA for mime in (called, *_mime_types(data)))
    return False


def _is_mail(data: bytes, suffix: str) -> bool:
    """Return whether a file begins with the headers of a message, as sent or as stored in a mailbox."""
    head = as_utf8(data[:65536]).lstrip(b"\xef\xbb\xbf\r\n")
    names = set()
    for line in without_separator(head).splitlines():
        header = _HEADER.match(line)
        if header:
            names.add(header[1].lower())
        elif not (names and line.startswith((b" ", b"\t"))):
            break
    if suffix in _SUFFIXES["eml"]:
        return bool(names)
    if suffix in _SUFFIXES["msg"] | _SUFFIXES["mbox"] or begins_message(head):
        return bool(names & _MAIL_HEADERS)
    return b"from" in names and bool(names & _TRANSPORT_HEADERS)


def _is_saved_page(data: bytes, suffix: str) -> bool:
    """Return whether a file is a web page with its resources, which browsers save as a message."""
    head = as_utf8(data[:65536]).lstrip(b"\xef\xbb\xbf\r\n")
    headers = _END_OF_HEADERS.split(head, maxsplit=1)[0]
    is_message = _PAGE_TYPE.search(headers) is not None
    return is_message and (suffix in _SUFFIXES["mht"] or _SAVED_BY.search(headers) is not None)


def _type_of_text(text: str, path: PurePath) -> str:
    suffix = path.suffix
    if text.startswith(PGP_MESSAGE):
        raise Unreadable(ENCRYPTED)
    if match := _ITEMS.match(text):
        return "vcf" if match[1].upper() == "VCARD" else "ics"
    if suffix in _SUFFIXES["code"] or path.name in _CODE_NAMES:
        return "code"
    if _HTML_DOCUMENT.match(text):
        return "html"
    if _EVERNOTE.match(text):
        return "enex"
    flat = flat_mimetype(text) if _XML_DOCUMENT.match(text) or suffix in _FLAT else ""
    if flat in _MIMETYPE_TYPES:
        return _MIMETYPE_TYPES[flat]
    if _XML_DOCUMENT.match(text) or (suffix in _SUFFIXES["xml"] and _TAG.match(text.lstrip())):
        return "xml"
    if suffix in _SUFFIXES["markdown"] | _CANVAS:
        return "markdown"
    if suffix in _SUFFIXES["html"] and _TAG.search(text):
        return "html"
    if suffix in _SUFFIXES["csv"]:
        return "csv"
    if suffix in _TEMPLATES or _SCRIPT.match(text):
        return "code"
    if suffix in _SUFFIXES["json"] | _SUFFIXES["notebook"] | _AMBIGUOUS and (doc_type := _type_of_json(text)):
        return doc_type
    return _guessed_type(text) if suffix in _AMBIGUOUS else "text"


def _type_of_json(text: str) -> str | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except RecursionError:
        return "json"
    except ValueError:  # one value per line, or JSON with comments
        return "json" if text.lstrip()[1:].lstrip()[:1] in ('"', "}", "]", "{", "[") else None
    return "notebook" if _NOTEBOOK.search(text) and '"cells"' in text else "json"


def _guessed_type(text: str) -> str:
    if _HTML_FRAGMENT.match(text):
        return "html"
    if _MARKDOWN_HEADING.search(text) and len(_MORE_MARKDOWN.findall(text)) > 1:
        return "markdown"
    return "csv" if looks_delimited(text) else "text"


def _type_in_zip(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [plain_name(name) for name in archive.namelist()]
            mimetype = _mimetype(archive)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, OSError, ValueError):
        raise Unreadable(
            "the file is damaged or cut short: it begins like a zip archive (as Word files do), but is incomplete"
        ) from None
    for folder, doc_type in _OFFICE_TYPES.items():
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return doc_type
    for beginning, doc_type in _MIMETYPE_TYPES.items():
        if mimetype.startswith(beginning):
            return doc_type
    if "META-INF/container.xml" in names:
        return "epub"
    if map_in(names):
        return "kmz"
    raise Unreadable(_reason_for_zip(names))


def _mimetype(archive: zipfile.ZipFile) -> str:
    """Return the media type in EPUB and OpenDocument files; its entry should be the first but not always is."""
    member = next((member for member in archive.infolist() if member.filename == "mimetype"), None)
    if not member or member.file_size > _LONGEST_MIMETYPE or member.flag_bits & 1:
        return ""
    try:
        return archive.read(member).decode("ascii", "replace")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        return ""  # the archive's other entries also show its type


def _reason_for_zip(names: list[str]) -> str:
    for beginning, reason in _UNSUPPORTED_ZIPS.items():
        if any(name.startswith(beginning) for name in names):
            return reason
    return "it is a zip archive: unpack it and add the files in it"


def _type_in_ole(data: bytes) -> str:
    # Only streams of the root: deeper ones belong to objects embedded in the document.
    with open_ole(data) as ole:
        for stream, doc_type in _OLE_TYPES.items():
            if is_stream(ole, stream):
                return doc_type
        for stream, reason in _UNSUPPORTED_OLE.items():
            if is_stream(ole, stream):
                raise Unreadable(reason)
        for stream, (reason, kind) in _OLD_OLE.items():
            if is_stream(ole, stream):
                raise Opaque(reason, kind)
    raise Unreadable("it is a Microsoft OLE file of a type that kb does not read")


def _reason_for_binary(data: bytes, suffix: str) -> str:
    for signature, (old, kind) in _OLD_FILES.items():
        if data.startswith(signature):
            raise Opaque(old, kind)
    if data.startswith((b"\x7fELF", b"MZ")):
        return "it is a program, not a document"
    if is_envelope(data):
        return ENCRYPTED
    for mime in _mime_types(data):
        family, reason = mime.partition("/")[0], _reason_for_mime(mime)
        if reason and family in get_args(Kind):
            raise Opaque(reason, cast("Kind", family))
        if reason:
            return reason
    title = _TITLES.get(suffix)
    return f"the name ends in {suffix}, but the content is not {title}: {NOT_TEXT}" if title else NOT_TEXT


def _reason_for_mime(mime: str) -> str | None:
    family = mime.partition("/")[0]
    if family in _MEDIA:
        return _MEDIA[family].format(mime)
    if _ARCHIVE.search(mime):
        return f"it is an archive or compressed file ({mime}): unpack it and add the files in it"
    return None


def _mime_types(data: bytes) -> list[str]:
    import puremagic

    try:
        matches = puremagic.magic_string(data)
    except (puremagic.PureError, ValueError):
        return []
    # Below this, the signature is only one or two bytes, which occur by chance in any binary data.
    return [match.mime_type for match in matches if match.confidence >= 0.3]
