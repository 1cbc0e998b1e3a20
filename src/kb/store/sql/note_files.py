"""A folder that the engine keeps, and its files, in SQL."""

from collections.abc import Mapping
from typing import Any

from kb.store.row_mapping import Execute, field_values, map_note_file, map_notes_folder, mapped, raw
from kb.store.rows import NoteFile, NotesFolderState


class NoteFiles:
    """See `kb.store.protocol.NoteFiles`."""

    def __init__(self, execute: Execute, sql: Mapping[str, str], folder: str) -> None:
        self._execute = execute
        self._sql = sql
        self._folder = folder

    def _run(self, name: str, **values: object) -> Any:  # noqa: ANN401 - the cursors of both databases
        return self._execute(self._sql[name], {"folder": self._folder, **values})

    def take(self, holder: str, seconds: float) -> bool:
        return bool(self._run("take_folder", holder=holder, seconds=seconds).fetchall())

    def release(self, holder: str) -> None:
        self._run("release_folder", holder=holder)

    def folder(self) -> NotesFolderState:
        return next(iter(mapped(map_notes_folder, self._run("select_folder"))), NotesFolderState())

    def set_folder(self, state: NotesFolderState) -> None:
        self._run("set_folder", **field_values(state))

    def forget(self) -> None:
        self.clear()
        self._run("delete_folder")

    def all(self) -> list[NoteFile]:
        return mapped(map_note_file, self._run("select_files"))

    def without_path(self, after: int, since: str) -> list[int]:
        found = self._execute(self._sql["select_without_path"], {"after": after, "since": raw(since)})
        return [row[0] for row in found]

    def attachments(self) -> list[NoteFile]:
        return mapped(map_note_file, self._run("select_attachments"))

    def unwritten_attachments(self) -> list[tuple[int, int]]:
        place = f"{self._folder}attachments"
        return list(self._run("select_unwritten_attachments", first=f"{place}/", end=f"{place}0").fetchall())

    def base(self, document_id: int) -> bytes | None:
        row = self._run("select_base", document_id=document_id).fetchone()
        return bytes(row[0]) if row else None

    def put(self, file: NoteFile, base: bytes) -> None:
        self._run("delete_other", path=file.path, document_id=file.document_id)
        self._run("free_path", path=file.path, document_id=file.document_id)
        self._run("put_file", **field_values(file), base=base)

    def settle(self, document_id: int, version: int) -> None:
        self._run("settle_file", document_id=document_id, version=version)

    def remove(self, document_id: int) -> None:
        self._run("delete_file", document_id=document_id)

    def clear(self) -> None:
        self._run("delete_files")

    def distrust(self) -> None:
        self._run("distrust_files", nothing=b"")

    def unwritten(self) -> list[tuple[int, int]]:
        return list(self._run("select_unwritten").fetchall())

    def gone(self) -> list[int]:
        return [document_id for (document_id,) in self._run("select_gone").fetchall()]
