"""Open the source of a document in the user's editor or the default program."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from typing import Any, Final

from kb.folders.disk_view import find_file
from kb_cli.runtime.config import load_config
from kb_cli.runtime.editor import editor_command, run_editor
from kb_cli.runtime.exit_codes import LocalError
from kb_cli.runtime.output import print_error

URL_SCHEMES: Final = ("http://", "https://")
IN_EDITOR: Final = ("code", "csv", "json", "markdown", "text", "xml")
"""Document types that people read in an editor."""

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
"""File types that programs only display: no source code, links, macros or installers."""

PAGE_VIEWERS: Final = {
    "evince": ("--page-index={page}",),
    "papers": ("--page-index={page}",),
    "okular": ("--page", "{page}"),
    "zathura": ("--page={page}",),
    "atril": ("--page-index={page}",),
    "xreader": ("--page-index={page}",),
}
"""Viewers by the names of their desktop files, with their options for a page."""

COLON_EDITORS: Final = {"code": ("-g",), "codium": ("-g",), "cursor": ("-g",), "subl": (), "zed": (), "hx": ()}
"""Editors that accept FILE:LINE, with the option for it; all others accept +LINE FILE."""


def open_source(document: dict[str, Any], line: int | None = None, page: int | None = None) -> None:
    """Open the source of a document or result, at a line in an editor or at a page of a PDF.

    For a file inside another one, the outer file opens. Any writer can set a source path, so kb opens nothing that
    could run code, and contacts no other machine.
    """
    source, document_id = document["source_path"] or "", document["document_id"]
    refuse_elsewhere(source)
    if path := find_file(source):
        source = str(path)
    elif document["doc_type"] == "note":  # a note has no file; its web page shows it
        launch(f"{load_config().engine_url.rstrip('/')}/d/{document_id}")
        return
    if whole := enclosing_file(source):
        refuse_unsafe(whole)
        print_error(
            f"{source} is inside {whole}, so kb opens that; 'kb get {document_id} --file .' saves only the inner file"
        )
        open_source({**document, "source_path": whole, "doc_type": ""})
        return
    if not (source.startswith(URL_SCHEMES) or Path(source).is_file()):
        reason = f"{source} is not on this machine" if source else f"document {document_id} did not come from a file"
        raise LocalError(f"{reason}. To see its text: kb get {document_id}")
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
    """Return the local file that contains the source, such as the mail of an attachment, or None."""
    if source.startswith(URL_SCHEMES) or Path(source).is_file():
        return None
    around = [*(source[: match.start()] for match in re.finditer("#", source)), *map(str, Path(source).parents)]
    return next((path for path in sorted(around, key=len, reverse=True) if Path(path).is_file()), None)


def at_line(editor: str, file: str, line: int | None) -> list[str]:
    if line is None:
        return [file]
    name = Path(editor).stem
    return [*COLON_EDITORS[name], f"{file}:{line}"] if name in COLON_EDITORS else [f"+{line}", file]


def viewer_at(file: str, page: int) -> list[str] | None:
    """Return the command to show a page of a PDF in the default viewer; None if kb does not know that viewer."""
    if sys.platform != "linux":
        return None
    asked = ["xdg-mime", "query", "default", "application/pdf"]
    try:
        answer = subprocess.run(asked, check=False, capture_output=True, text=True)  # noqa: S603 - fixed arguments
    except OSError:
        return None
    for name, options in PAGE_VIEWERS.items():
        if name in answer.stdout.lower() and (program := shutil.which(name)):
            return [program, *(option.format(page=page) for option in options), file]
    return None


def start(command: list[str]) -> None:
    """Start a program with its own window, without waiting for it."""
    try:
        subprocess.Popen(  # noqa: S603 - the user's own viewer
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise LocalError(f"{command[0]} could not be started: {error.strerror}.") from None


def launch(target: str) -> None:
    """Open a file or an address with the default program."""
    if sys.platform == "win32":
        os.startfile(target)  # noqa: S606 - intended
        return
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        status = subprocess.run(  # noqa: S603 - a single argument, without a shell
            [opener, target], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
    except OSError:
        status = 1
    if status:
        raise LocalError(f"This machine has no default program that opens {target}.")


def refuse_elsewhere(source: str, *, is_windows: bool = sys.platform == "win32") -> None:
    """Refuse a path of another machine or a device: Windows would connect and send the user's credentials."""
    if is_windows and PureWindowsPath(source).drive.startswith("\\\\"):
        raise LocalError(
            f"{source} is on another machine or a device. kb does not open it, because Windows would send your"
            " credentials there."
        )


def refuse_unsafe(path: str) -> None:
    """Refuse to open a program, or a file of a type that might run one."""
    if sys.platform != "win32" and os.access(path, os.X_OK):
        raise LocalError(f"{path} is a program; kb does not start programs.")
    if not is_opened(path):
        kind = PureWindowsPath(path).suffix or "without a suffix"
        raise LocalError(
            f"{path}: kb does not open files of this kind ({kind}), because some of them run programs. If you trust it,"
            " open it yourself; if it is a text file, set EDITOR."
        )


def is_opened(path: str) -> bool:
    """Return whether other programs only display this file type, judging by the name as Windows reads it."""
    name = PureWindowsPath(path)
    return name.suffix.lower() in OPENED and ":" not in name.name
