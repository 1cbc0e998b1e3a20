"""The file types that kb itself reads. To add one, add its reader to `kb.formats.readers` and a line here.

Other packages add file types through the entry point group `kb.readers`, as kb does with this list.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

UNREADABLE: Final = {
    "a picture": ("bmp", "gif", "heic", "ico", "jpeg", "jpg", "png", "psd", "tif", "tiff", "webp"),
    "a sound recording": ("aac", "flac", "m4a", "mp3", "ogg", "opus", "wav", "wma"),
    "a film": ("avi", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "webm", "wmv"),
    "a program": ("dll", "exe", "so"),
    "an archive": ("7z", "bz2", "gz", "rar", "tar", "xz", "zip", "zst"),
}
"""Files without readable text: the suffixes of each kind."""

IMAGE: Final = "image"
_CODE: Final = (
    *(".ada", ".asm", ".awk", ".bash", ".bat", ".c", ".cc", ".cjs", ".clj", ".cljs", ".cmake", ".cmd", ".cpp", ".cs"),
    *(".css", ".cu", ".cxx", ".d", ".dart", ".el", ".elm", ".erl", ".ex", ".exs", ".f", ".f90", ".fish", ".fs", ".fsx"),
    *(".glsl", ".go", ".gradle", ".graphql", ".groovy", ".h", ".hcl", ".hh", ".hpp", ".hs", ".hxx", ".ipp", ".java"),
    *(".jl", ".js", ".jsx", ".kt", ".kts", ".less", ".lisp", ".lua", ".m", ".mjs", ".mk", ".ml", ".mli", ".mm", ".nim"),
    *(".nix", ".pas", ".pl", ".pm", ".proto", ".ps1", ".psm1", ".py", ".pyi", ".pyx", ".r", ".rb", ".rkt", ".rs", ".s"),
    *(".sass", ".scala", ".scm", ".scss", ".sh", ".sol", ".sql", ".sv", ".swift", ".tcl", ".tf", ".ts", ".tsx", ".v"),
    *(".vb", ".vbs", ".vhd", ".vhdl", ".wgsl", ".zig", ".zsh"),
)


@dataclass(frozen=True, slots=True)
class Format:
    """A file type.

    Args:
        doc_type: the type of its documents.
        title: its name for people, with an article.
        reader: the full name of the module that reads it. The module has a function `read(data: bytes) -> Extracted`:
            pure, without state, and raising `Unreadable` if the file is at fault. It is imported when first needed.
        suffixes: the suffixes of its file names, in lower case. They decide only between kinds of text, and for the
            types of other packages.
        is_text: whether people see its files as written, so that base64 in them is noise.
    """

    doc_type: str
    title: str
    reader: str
    suffixes: tuple[str, ...] = ()
    is_text: bool = False


def _own(doc_type: str, title: str, module: str, suffixes: tuple[str, ...] = (), *, is_text: bool = False) -> Format:
    return Format(doc_type, title, f"kb.formats.readers.{module}", suffixes, is_text)


FORMATS: Final = (
    _own("code", "source code", "text", _CODE, is_text=True),
    _own("csv", "a table of values", "delimited", (".csv", ".tsv", ".tab"), is_text=True),
    _own("docx", "a Word document", "docx", (".docx",)),
    _own("eml", "a message", "eml", (".eml", ".emlx")),
    _own("enex", "an Evernote export", "enex", (".enex",)),
    _own("epub", "an EPUB book", "epub", (".epub",)),
    _own("html", "a web page", "html", (".html", ".htm", ".xhtml", ".shtml"), is_text=True),
    _own("ics", "a calendar", "calendar", (".ics", ".ical", ".ifb", ".vcs")),
    _own(IMAGE, "a picture", "image"),
    _own(
        "json",
        "JSON",
        "json",
        (".json", ".jsonl", ".ndjson", ".geojson", ".geojsonl", ".topojson", ".webmanifest"),
        is_text=True,
    ),
    _own("kmz", "a map", "tracks", (".kmz",)),
    _own(
        *("markdown", "Markdown", "markdown"),
        (".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd"),
        is_text=True,
    ),
    _own("mbox", "a mailbox", "mbox", (".mbox", ".mbx")),
    _own("mht", "a saved web page", "mht", (".mht", ".mhtml")),
    _own("msg", "an Outlook message", "msg", (".msg",)),
    _own("notebook", "a Jupyter notebook", "notebook", (".ipynb",), is_text=True),
    _own("odp", "an OpenDocument presentation", "odf", (".odp",)),
    _own("ods", "an OpenDocument spreadsheet", "spreadsheet", (".ods",)),
    _own("odt", "an OpenDocument text", "odf", (".odt",)),
    _own("pdf", "a PDF", "pdf", (".pdf",)),
    _own("pptx", "a PowerPoint presentation", "pptx", (".pptx",)),
    _own("rtf", "rich text", "rtf", (".rtf",)),
    _own("text", "a text", "text", (".txt", ".text", ".log"), is_text=True),
    _own("tnef", "an Outlook package", "tnef", (".tnef",)),
    _own("vcf", "contacts", "contacts", (".vcf", ".vcard")),
    _own("xls", "an Excel 97-2003 workbook", "spreadsheet", (".xls",)),
    _own("xlsx", "an Excel workbook", "spreadsheet", (".xlsx",)),
    _own(
        "xml", "XML", "xml", (".xml", ".rss", ".atom", ".rdf", ".gpx", ".kml", ".tcx", ".ttml", ".dfxp"), is_text=True
    ),
)

OWN_TYPES: Final = tuple(sorted(("note", *(each.doc_type for each in FORMATS))))
"""The types of documents that kb has without other packages. The engine knows all (`kb.formats.installed_types`)."""

CALLED: Final = {suffix.removeprefix("."): each.doc_type for each in FORMATS for suffix in each.suffixes} | {
    "word": "docx",
    "doc": "docx",
    "excel": "xlsx",
    "powerpoint": "pptx",
    "ppt": "pptx",
    "email": "eml",
    "mail": "eml",
    "picture": IMAGE,
}
"""Other names of a type: the suffixes of its files, and the names of programs."""

KINDS: Final = {
    "notes": ("note", "markdown"),
    "pdfs": ("pdf",),
    "pictures": (IMAGE,),
    "mails": ("eml", "mbox", "msg", "tnef"),
    "spreadsheets": ("csv", "ods", "xls", "xlsx"),
    "slides": ("odp", "pptx"),
    "webpages": ("html", "mht"),
    "texts": ("docx", "odt", "rtf", "text"),
    "sources": ("code", "json", "notebook", "xml"),
    "calendars": ("ics",),
    "contacts": ("vcf",),
    "books": ("epub",),
}
"""The types of documents that people think of as one kind; a filter by type also takes the name of a kind."""

MARKED_UP: Final = ("markdown", "text")
MARKUPS: Final = {
    suffix: f"kb.formats.readers.{reader}"
    for reader, suffixes in {
        "asciidoc": (".adoc", ".asciidoc"),
        "canvas": (".canvas",),
        "org": (".org",),
        "rst": (".rst", ".rest"),
        "subtitles": (".srt", ".vtt", ".sbv", ".ass", ".ssa", ".lrc"),
        "tex": (".tex", ".ltx", ".latex", ".bib"),
    }.items()
    for suffix in suffixes
}
"""The readers of texts with a syntax of their own, by file name suffix; the types of such texts are `MARKED_UP`."""


def named_type(name: str, known: Collection[str]) -> str:
    """Return the kind, otherwise the known type, that a person calls by this name; without either, the name itself."""
    kind = name.casefold().strip()
    return kind if kind in KINDS else type_called(name, known) or name


def types_called(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the known types of the kind that a person calls by this name, or the one type, as in `type_called`."""
    kind = tuple(each for each in KINDS.get(name.casefold().strip(), ()) if each in known)
    doc_type = type_called(name, known)
    return kind or ((doc_type,) if doc_type else ())


def type_called(name: str, known: Collection[str]) -> str | None:
    """Return the known type that a person calls by this name, such as `PDF`, `.md` or `Word`; None if kb knows none."""
    bare = name.casefold().strip(" .")
    doc_type = bare if bare in known else CALLED.get(bare)
    return doc_type if doc_type in known else None
