"""The types of documents; those of files are the engine's formats (`kb.formats.registry`)."""

from __future__ import annotations

from typing import Final

DOC_TYPES: Final = (
    "code",
    "csv",
    "docx",
    "eml",
    "epub",
    "html",
    "json",
    "markdown",
    "mbox",
    "msg",
    "note",
    "notebook",
    "odp",
    "ods",
    "odt",
    "pdf",
    "pptx",
    "rtf",
    "text",
    "xls",
    "xlsx",
    "xml",
)
