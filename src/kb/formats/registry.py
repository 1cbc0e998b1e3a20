"""The formats with a reader: the only list of file types.

A reader is a module of `kb.formats.readers` with a function `read(data: bytes) -> Extracted`: pure, without state, and
raising `Unreadable` if the file is at fault. Readers are imported when first needed, to keep the start fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_CODE: Final = (
    *(".ada", ".asm", ".awk", ".bash", ".bat", ".c", ".cc", ".cjs", ".clj", ".cljs", ".cmake", ".cmd", ".cpp", ".cs"),
    *(".css", ".cu", ".cxx", ".d", ".dart", ".el", ".elm", ".erl", ".ex", ".exs", ".f", ".f90", ".fish", ".fs", ".fsx"),
    *(".glsl", ".go", ".gradle", ".graphql", ".groovy", ".h", ".hcl", ".hh", ".hpp", ".hs", ".hxx", ".ipp", ".java"),
    *(".jl", ".js", ".jsx", ".kt", ".kts", ".less", ".lisp", ".lua", ".m", ".mjs", ".mk", ".ml", ".mli", ".mm", ".nim"),
    *(".nix", ".pas", ".pl", ".pm", ".proto", ".ps1", ".psm1", ".py", ".pyi", ".pyx", ".r", ".rb", ".rkt", ".rs", ".s"),
    *(".sass", ".scala", ".scm", ".scss", ".sh", ".sol", ".sql", ".sv", ".swift", ".tcl", ".tf", ".ts", ".tsx", ".v"),
    *(".vb", ".vbs", ".vhd", ".vhdl", ".wgsl", ".zig", ".zsh"),
)


IMAGE: Final = "image"


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Args:
        doc_type: the type of its documents.
        title: its name for people, with an article.
        module: its reader, a module of `kb.formats.readers`.
        suffixes: the suffixes of its file names. They decide only between kinds of text.
        is_text: whether people see its files as written, so that base64 in them is noise.
    """

    doc_type: str
    title: str
    module: str
    suffixes: tuple[str, ...] = ()
    is_text: bool = False

    @property
    def reader(self) -> str:
        """The full name of the reader's module."""
        return f"kb.formats.readers.{self.module}"


FORMATS: Final = {
    format_.doc_type: format_
    for format_ in (
        Format("code", "source code", "text", _CODE, is_text=True),
        Format("csv", "a table of values", "delimited", (".csv", ".tsv", ".tab"), is_text=True),
        Format("docx", "a Word document", "docx", (".docx",)),
        Format("eml", "a message", "eml", (".eml", ".emlx")),
        Format("enex", "an Evernote export", "enex", (".enex",)),
        Format("epub", "an EPUB book", "epub", (".epub",)),
        Format("html", "a web page", "html", (".html", ".htm", ".xhtml", ".shtml"), is_text=True),
        Format("ics", "a calendar", "calendar", (".ics", ".ical", ".ifb", ".vcs")),
        Format(IMAGE, "a picture", "image"),
        Format("json", "JSON", "json", (".json", ".jsonl", ".ndjson", ".geojson", ".webmanifest"), is_text=True),
        Format(
            *("markdown", "Markdown", "markdown"),
            (".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd"),
            is_text=True,
        ),
        Format("mbox", "a mailbox", "mbox", (".mbox", ".mbx")),
        Format("mht", "a saved web page", "mht", (".mht", ".mhtml")),
        Format("msg", "an Outlook message", "msg", (".msg",)),
        Format("notebook", "a Jupyter notebook", "notebook", (".ipynb",), is_text=True),
        Format("odp", "an OpenDocument presentation", "odf", (".odp",)),
        Format("ods", "an OpenDocument spreadsheet", "spreadsheet", (".ods",)),
        Format("odt", "an OpenDocument text", "odf", (".odt",)),
        Format("pdf", "a PDF", "pdf", (".pdf",)),
        Format("pptx", "a PowerPoint presentation", "pptx", (".pptx",)),
        Format("rtf", "rich text", "rtf", (".rtf",)),
        Format("text", "a text", "text", is_text=True),
        Format("tnef", "an Outlook package", "tnef", (".tnef",)),
        Format("vcf", "contacts", "contacts", (".vcf", ".vcard")),
        Format("xls", "an Excel 97-2003 workbook", "spreadsheet", (".xls",)),
        Format("xlsx", "an Excel workbook", "spreadsheet", (".xlsx",)),
        Format("xml", "XML", "xml", (".xml", ".rss", ".atom", ".rdf"), is_text=True),
    )
}

MARKUPS: Final = {".org": "org", ".rst": "rst", ".rest": "rst"}
"""The readers of texts with their own heading syntax, by file name suffix."""


def reader_module(doc_type: str, suffix: str) -> str:
    """Return the full name of the reader module for a file of this type with this suffix."""
    markup = MARKUPS.get(suffix) if doc_type == "text" else None
    return f"kb.formats.readers.{markup}" if markup else FORMATS[doc_type].reader
