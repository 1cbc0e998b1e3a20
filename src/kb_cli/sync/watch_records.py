"""The folders that this machine watches: one file per folder, so that two commands at once cannot lose one."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kb_cli.runtime.config import config_path
from kb_cli.runtime.files import replace_file
from kb_cli.runtime.last_search import state_folder
from kb_cli.runtime.output import print_error
from kb_cli.sync.folder import Folder

FOLDER: Final = "watched"
ID_LENGTH: Final = 32
_reported: set[str] = set()


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder to watch.

    Args:
        id: the id of the watch, which the engine also knows.
        prefix: the prefix of its source paths.
        engine_url: the address of the engine when the folder was added; only for people.
        exclude: patterns of files to skip.
        delete: whether to delete documents whose file is gone.
        follow_links: whether links to files outside the folder count as files.
    """

    id: str
    path: str
    prefix: str
    engine_url: str
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    delete: bool = False
    follow_links: bool = False

    @property
    def name(self) -> str:
        """The name of the folder in source paths."""
        return self.prefix.rstrip("/") or "/"

    def folder(self, *, is_sure: bool = False, is_watched: bool = True) -> Folder:
        return Folder(
            *(Path(self.path), self.prefix, self.tags, self.exclude, self.delete),
            is_sure=is_sure,
            follow_links=self.follow_links,
            is_watched=is_watched,
        )

    @property
    def lock(self) -> Path:
        """The lock of its rounds on this machine."""
        return state_folder() / f"round-{self.id}.lock"


def records_folder() -> Path:
    """Return the folder of the records, next to the configuration file."""
    return config_path().with_name(FOLDER)


def load_records() -> dict[str, WatchedFolder]:
    """Return the watched folders by id; report unreadable files once."""
    records = {}
    for file in sorted(records_folder().glob(f"{'[0-9a-f]' * ID_LENGTH}.json")):
        try:
            records[file.stem] = parse(file.stem, json.loads(file.read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            line = f"{file}: kb cannot read this record of a watched folder: {error}"
            if line not in _reported:
                print_error(line)
            _reported.add(line)
    return records


def parse(watch_id: str, values: object) -> WatchedFolder:
    """Return a record from its file.

    Raises:
        ValueError: a value is missing or wrong.
    """
    if not isinstance(values, dict):
        raise ValueError("not an object")
    lists = {name: values.pop(name, []) for name in ("tags", "exclude")}
    flags = {name: values.pop(name, False) for name in ("delete", "follow_links")}
    if not all(isinstance(each, list) and all(isinstance(word, str) for word in each) for each in lists.values()):
        raise ValueError("tags and exclude must be lists of strings")
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise ValueError("delete and follow_links must be true or false")
    if not all(isinstance(text, str) and text for text in values.values()):
        raise ValueError("path, prefix and engine_url must be strings")
    if not Path(values.get("path", "")).is_absolute():
        raise ValueError("path must be absolute")
    options: dict[str, Any] = {**values, **flags, **{name: tuple(words) for name, words in lists.items()}}
    return WatchedFolder(watch_id, **options)


def save_record(record: WatchedFolder) -> None:
    """Write a record, and replace the one with the same id."""
    values = asdict(record)
    values.pop("id")
    content = json.dumps(values, ensure_ascii=False, indent=2)
    replace_file(record_file(record.id), f"{content}\n".encode())


def remove_record(record: WatchedFolder) -> None:
    record_file(record.id).unlink(missing_ok=True)
    record.lock.unlink(missing_ok=True)


def record_file(watch_id: str) -> Path:
    return records_folder() / f"{watch_id}.json"
