"""The synced folders, in SQL."""

from kb.store.row_mapping import field_values, map_folder, mapped, raw
from kb.store.rows import SyncedFolder
from kb.store.sql.sql_part import SqlPart


class Folders(SqlPart):
    """See `kb.store.protocol.Folders`."""

    def all(self) -> list[SyncedFolder]:
        return mapped(map_folder, self._execute(self._sql["select_folders"]))

    def put(self, folder: SyncedFolder) -> None:
        self._execute(self._sql["put_folder"], field_values(folder) | {"at": raw(folder.at)})

    def set_watch(self, prefix: str, watch: str | None, *, is_kept: bool = False) -> None:
        self._execute(self._sql["set_watch"], {"prefix": prefix, "watch": watch, "is_kept": int(is_kept)})

    def remove(self, prefix: str) -> None:
        self._execute(self._sql["delete_folder"], {"prefix": prefix})

    def left_out(self) -> list[str]:
        return [path for (path,) in self._execute(self._sql["select_left_out"])]

    def leave_out(self, source_path: str) -> None:
        self._execute(self._sql["leave_out"], {"source_path": source_path})

    def let_in(self, source_path: str) -> None:
        self._execute(self._sql["let_in"], {"source_path": source_path})
