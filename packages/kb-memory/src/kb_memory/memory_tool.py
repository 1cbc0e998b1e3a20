"""Anthropic's memory tool: files below /memories, each a note of kb with this source path."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from kb_memory.engine import Engine, Refused

ROOT = "/memories"
LEVELS = 2
WIDTH = 6
MISSING = "The path {} does not exist. Please provide a valid path."
CONFLICT = 412

Document = dict[str, Any]
Method = TypeVar("Method", bound=Callable[..., str])


def told(method: Method) -> Method:
    """Tell the model the reason if kb refuses a call."""

    @wraps(method)
    def wrapped(self: object, command: object = None) -> str:
        try:
            return method(self, command)
        except Refused as error:
            changed = "The file has changed in the meantime. View it again, then edit it."
            raise ToolError(changed if error.status == CONFLICT else str(error)) from None

    return wrapped  # type: ignore[return-value]


class KbMemoryTool(BetaAbstractMemoryTool):
    """See `BetaAbstractMemoryTool`.

    Args:
        url: the address of kb; by default `KB_ENGINE_URL`.
        key: a key of kb; by default `KB_API_KEY`.
        folder: the source path of `/memories` in kb, if it differs.
    """

    def __init__(self, url: str | None = None, key: str | None = None, folder: str = ROOT) -> None:
        super().__init__()
        self._engine = Engine(url, key, "kb-memory anthropic")
        self._folder = folder.rstrip("/")

    @told
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _checked(command.path)
        if document := self._file(path):
            return self._numbered(command, self._engine.text(document["id"]).split("\n"))
        files = self._below(path)
        if not files and path != ROOT:
            raise ToolError(MISSING.format(command.path))
        return _listed(command.path, path, files)

    @told
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        path = _checked(command.path)
        if self._file(path) or self._below(path) or path == ROOT:
            raise ToolError(f"File {command.path} already exists")
        if not command.file_text.strip():
            raise ToolError("file_text: a note of kb cannot be empty.")
        self._engine.add(self._kept(path), command.file_text)
        return f"File created successfully at: {command.path}"

    @told
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        document = self._existing(command.path)
        text = self._engine.text(document["id"])
        count, old = text.count(command.old_str), command.old_str
        if count == 0:
            raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}.")
        if count > 1:
            lines = ", ".join(map(str, _lines_with(text, old)))
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}."
                " Please ensure it is unique"
            )
        line = text[: text.find(old)].count("\n")
        changed = text.replace(old, command.new_str)
        self._write(document, changed)
        lines_after = changed.split("\n")
        begin, end = max(0, line - 2), min(len(lines_after), line + 3)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _with_numbers(lines_after[begin:end], begin + 1)
        )

    @told
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        document = self._existing(command.path)
        text = self._engine.text(document["id"])
        lines = text.removesuffix("\n").split("\n")
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}."
                f" It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._write(document, "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    @told
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _checked(command.path)
        if path == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        document = self._file(path)
        gone = [document] if document else list(self._below(path).values())
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        for each in gone:
            self._engine.delete(each)
        return f"Successfully deleted {command.path}"

    @told
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _checked(command.old_path), _checked(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if self._file(new) or self._below(new) or new == ROOT:
            raise ToolError(f"The destination {command.new_path} already exists")
        if new.startswith(f"{old}/"):
            raise ToolError(f"{command.old_path} cannot be moved into itself")
        document = self._file(old)
        moved = {old: document} if document else self._below(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        for path, each in moved.items():
            self._engine.move(each, self._kept(new + path.removeprefix(old)))
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    @told
    def clear_all_memory(self, _: object = None) -> str:
        """Move all files to the bin."""
        for document in self._below(ROOT).values():
            self._engine.delete(document)
        return "All memory cleared"

    def _kept(self, path: str) -> str:
        """Return the source path of a file in kb."""
        return self._folder + path.removeprefix(ROOT)

    def _file(self, path: str) -> Document | None:
        return self._engine.at(self._kept(path)) if path != ROOT else None

    def _existing(self, given: str) -> Document:
        path = _checked(given)
        if document := self._file(path):
            return document
        is_folder = path == ROOT or self._below(path)
        raise ToolError(f"The path {given} is not a file." if is_folder else MISSING.format(given))

    def _below(self, path: str) -> dict[str, Document]:
        """Return the files below a folder by their paths."""
        found = self._engine.below(f"{self._kept(path)}/")
        return {ROOT + each["source_path"].removeprefix(self._folder): each for each in found}

    def _write(self, document: Document, text: str) -> None:
        if not text.strip():
            raise ToolError("A note of kb cannot be empty. Delete the file instead.")
        self._engine.change(document, text)

    def _numbered(self, command: BetaMemoryTool20250818ViewCommand, lines: list[str]) -> str:
        begin, end = 0, len(lines)
        if command.view_range and len(command.view_range) == 2:
            begin = max(1, command.view_range[0]) - 1
            end = len(lines) if command.view_range[1] == -1 else command.view_range[1]
        shown = _with_numbers(lines[begin:end], begin + 1)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"


def _checked(path: str) -> str:
    """Return a path below /memories without a final slash.

    Raises:
        ToolError: it is elsewhere.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    parts = [part for part in path.removeprefix(ROOT).split("/") if part not in ("", ".")]
    if ".." in parts or "\\" in path or not path.isprintable():
        raise ToolError(f"Path {path} would escape /memories directory")
    return "/".join([ROOT, *parts])


def _with_numbers(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _lines_with(text: str, part: str) -> list[int]:
    lines, start = [], 0
    while (at := text.find(part, start)) >= 0:
        lines.append(text[:at].count("\n") + 1)
        start = at + 1
    return lines


def _listed(given: str, path: str, files: dict[str, Document]) -> str:
    """Return the entries of a folder, two levels deep, without hidden ones."""
    entries: set[str] = set()
    for file in files:
        parts = file.removeprefix(f"{path}/").split("/")
        if any(part.startswith(".") for part in parts[:LEVELS]):
            continue
        entries |= {"/".join(parts[:depth]) + "/" for depth in range(1, min(len(parts), LEVELS + 1))}
        entries |= {"/".join(parts)} if len(parts) <= LEVELS else set()
    header = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:"
    ordered = sorted(entries, key=lambda entry: entry.rstrip("/").split("/"))
    return "\n".join([header, given, *(f"{given.rstrip('/')}/{entry}" for entry in ordered)])
