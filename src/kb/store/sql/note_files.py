"""The notes folder and its files, in SQL."""

from collections.abc import Mapping

from kb.store.row_mapping import Execute, field_values, map_note_file, map_notes_folder, mapped
from kb.store.rows import NoteFile, NotesFolderState


class NoteFiles:
    """See `kb.store.protocol.NoteFiles`."""

    def __init__(self, execute: Execute, sql: Mapping[str, str]) -> None:
        self._execute = execute
        self._sql = sql

    def take(self, holder: str, seconds: float) -> bool:
        return bool(self._execute(self._sql["take_folder"], {"holder": holder, "seconds": seconds}).fetchall())

    def release(self, holder: str) -> None:
        self._execute(self._sql["release_folder"], {"holder": holder})

    def folder(self) -> NotesFolderState:
        return next(iter(mapped(map_notes_folder, self._execute(self._sql["select_folder"]))), NotesFolderState())

    def set_folder(self, state: NotesFolderState) -> None:
        self._execute(self._sql["set_folder"], field_values(state))

    def all(self) -> list[NoteFile]:
        return mapped(map_note_file, self._execute(self._sql["select_files"]))

    def attachments(self) -> list[NoteFile]:
        return mapped(map_note_file, self._execute(self._sql["select_attachments"]))

    def unwritten_attachments(self) -> list[tuple[int, int]]:
        return list(self._execute(self._sql["select_unwritten_attachments"]).fetchall())

    def base(self, document_id: int) -> bytes | None:
        row = self._execute(self._sql["select_base"], {"document_id": document_id}).fetchone()
        return bytes(row[0]) if row else None

    def put(self, file: NoteFile, base: bytes) -> None:
        self._execute(self._sql["free_path"], {"path": file.path, "document_id": file.document_id})
        self._execute(self._sql["put_file"], field_values(file) | {"base": base})

    def settle(self, document_id: int, version: int) -> None:
        self._execute(self._sql["settle_file"], {"document_id": document_id, "version": version})

    def remove(self, document_id: int) -> None:
        self._execute(self._sql["delete_file"], {"document_id": document_id})

    def clear(self) -> None:
        self._execute(self._sql["delete_files"])

    def distrust(self) -> None:
        self._execute(self._sql["distrust_files"], {"nothing": b""})

    def unwritten(self) -> list[tuple[int, int]]:
        return list(self._execute(self._sql["select_unwritten"]).fetchall())

    def gone(self) -> list[int]:
        return [document_id for (document_id,) in self._execute(self._sql["select_gone"]).fetchall()]
