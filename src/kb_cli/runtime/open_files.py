"""Opening what a document came from: in the user's editor, or in the program that this machine has for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from kb_cli.runtime.config import load_config
from kb_cli.runtime.editor import editor_command, run_editor
from kb_cli.runtime.exit_codes import LocalError
from kb_cli.runtime.output import print_error
from kb_cli.sync.disk_view import find_file

URL_SCHEMES: Final = ("http://", "https://")
IN_EDITOR: Final = ("code", "csv", "json", "markdown", "text", "xml")
"""Types of documents that people read in an editor."""

OPENED: Final = frozenset(
    (
        *(".pdf", ".epub", ".djvu", ".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".rtf", ".pages", ".numbers"),
        *(".key", ".html", ".htm", ".xhtml", ".mht", ".mhtml", ".md", ".markdown", ".txt", ".text", ".log", ".rst"),
        *(".org", ".adoc", ".tex", ".bib", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml"),
        *(".ipynb", ".ics", ".vcf", ".eml", ".emlx", ".mbox", ".msg", ".srt", ".vtt", ".zip", ".tar", ".gz", ".tgz"),
        *(".bz2", ".xz", ".7z", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp", ".heic", ".avif"),
        *(".mp3", ".m4a", ".wav", ".flac", ".ogg", ".opus", ".mp4", ".m4v", ".mov", ".mkv", ".webm"),
    )
)
"""Kinds of files that programs show and that start nothing: no source code, no links, no macros, no installers."""

PAGE_VIEWERS: Final = {
    "evince": ("--page-index={page}",),
    "papers": ("--page-index={page}",),
    "okular": ("--page", "{page}"),
    "zathura": ("--page={page}",),
    "atril": ("--page-index={page}",),
    "xreader": ("--page-index={page}",),
}
"""Viewers by what their desktop files are called, and how they take a page."""

COLON_EDITORS: Final = {"code": ("-g",), "codium": ("-g",), "cursor": ("-g",), "subl": (), "zed": (), "hx": ()}
"""Editors that take a line as FILE:LINE, and the option for that; all others take +LINE FILE."""


def open_source(document: dict[str, Any], line: int | None = None, page: int | None = None) -> None:
    """Open what a document or a result is from, at a line of it if there is an editor, or at a page of a PDF.

    Of what came inside another file, that one is opened. Where a document says that it comes from is the word of
    whoever may write, so that nothing is opened that would start, and nothing is asked of another machine.

    Raises:
        LocalError: it is not on this machine, or of a kind that is not opened, or nothing opens it.
    """
    source, document_id = document["source_path"] or "", document["document_id"]
    refuse_elsewhere(source)
    if path := find_file(source):
        source = str(path)
    elif document["doc_type"] == "note":  # it has no file: its page is where it can be read and changed
        launch(f"{load_config().engine_url.rstrip('/')}/d/{document_id}")
        return
    if whole := enclosing_file(source):
        refuse_unsafe(whole)
        print_error(f"{source} is inside {whole}, which opens; 'kb get {document_id} --file .' saves it alone")
        open_source({**document, "source_path": whole, "doc_type": ""})
        return
    if not (source.startswith(URL_SCHEMES) or Path(source).is_file()):
        reason = f"{source} is not on this machine" if source else f"document {document_id} is no file"
        raise LocalError(f"{reason}: 'kb get {document_id}' shows its text.")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if editor and document["doc_type"] in IN_EDITOR and not source.startswith(URL_SCHEMES):
        command = editor_command(editor)
        run_editor([*command, *at_line(command[0], source, line)])
        return
    if not source.startswith(URL_SCHEMES):
        refuse_unsafe(source)
    if page and document["doc_type"] == "pdf" and (viewer := viewer_at(source, page)):
        start(viewer)
    else:
        launch(source)


def enclosing_file(source: str) -> str | None:
    """Return the file on this machine that holds what came from a path, as a mail does its attachments; or None."""
    if source.startswith(URL_SCHEMES) or Path(source).is_file():
        return None
    around = [*(source[: match.start()] for match in re.finditer("#", source)), *map(str, Path(source).parents)]
    return next((path for path in sorted(around, key=len, reverse=True) if Path(path).is_file()), None)


def at_line(editor: str, file: str, line: int | None) -> list[str]:
    """Return the arguments with which an editor opens a file at a line."""
    if line is None:
        return [file]
    name = Path(editor).stem
    return [*COLON_EDITORS[name], f"{file}:{line}"] if name in COLON_EDITORS else [f"+{line}", file]


def viewer_at(file: str, page: int) -> list[str] | None:
    """Return the command that shows a page of a PDF in the viewer that this machine has; None if it is none of ours."""
    if sys.platform != "linux":
        return None
    asked = ["xdg-mime", "query", "default", "application/pdf"]
    try:
        answer = subprocess.run(asked, check=False, capture_output=True, text=True)  # noqa: S603 - of our own words
    except OSError:
        return None
    for name, options in PAGE_VIEWERS.items():
        if name in answer.stdout.lower() and (program := shutil.which(name)):
            return [program, *(option.format(page=page) for option in options), file]
    return None


def start(command: list[str]) -> None:
    """Start a program with a window of its own, and leave it alone."""
    try:
        subprocess.Popen(  # noqa: S603 - the user's own viewer
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise LocalError(f"{command[0]} does not start: {error.strerror}.") from None


def launch(target: str) -> None:
    """Open a file or an address with the program that this machine has for it."""
    if sys.platform == "win32":
        os.startfile(target)  # noqa: S606 - that is what was asked for
        return
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        status = subprocess.run(  # noqa: S603 - one argument, which no shell reads
            [opener, target], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
    except OSError:
        status = 1
    if status:
        raise LocalError(f"No program opens {target} here.")


def refuse_elsewhere(source: str, *, is_windows: bool = sys.platform == "win32") -> None:
    """Refuse a path of another machine or of a device: Windows would connect there, and say who asks.

    Raises:
        LocalError: it is one.
    """
    if is_windows and PureWindowsPath(source).drive.startswith("\\\\"):
        raise LocalError(f"{source} is on another machine or a device, and is not looked at from here.")


def refuse_unsafe(path: str) -> None:
    """Refuse to open what would start, or is of a kind that might.

    Raises:
        LocalError: it is so.
    """
    if sys.platform != "win32" and os.access(path, os.X_OK):
        raise LocalError(f"{path} is a program, and is not started from here.")
    if not is_opened(path):
        kind = PureWindowsPath(path).suffix or "without a suffix"
        raise LocalError(
            f"{path}: files of this kind ({kind}) are not opened from here, because some of them start something."
            " Open it yourself if you trust it, or set EDITOR if it is a text."
        )


def is_opened(path: str) -> bool:
    """Return whether a file is of a kind that other programs only show. Its name says so as Windows reads it."""
    name = PureWindowsPath(path)
    return name.suffix.lower() in OPENED and ":" not in name.name
