"""Settings that change while the engine runs, and the parts that follow them."""

import ipaddress
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from kb.api.errors import Invalid, SettingError, SettingFixed, StoreError
from kb.api.settings_models import Setting, SettingList, SettingsChange, Source
from kb.backup.make import refuse_occupied
from kb.filesystem import ownership, write_private
from kb.settings import SAVED, Settings, variable

logger = logging.getLogger(__name__)

USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
"""The user and password of an address."""

OPTIONS: Final = re.compile(r"\?[^;,\s]*")
"""The options of an address, which may contain secrets."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the engine that follows some settings.

    Args:
        names: the settings.
        check: raises `SettingError` for settings that the part cannot use.
        start: starts the part; returns None if the settings turn it off.
    """

    names: tuple[str, ...]
    check: Callable[[Settings], object]
    start: Callable[[Settings], AbstractContextManager[object] | None]
    running: ExitStack = field(default_factory=ExitStack)


class LiveSettings:
    """The settings of a running engine: from the environment, from the file of saved settings, and by default.

    Args:
        environment: the environment of the engine.

    Raises:
        SettingError: a setting is wrong.

    Attributes:
        settings: the settings in use.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._parts: list[Part] = []
        self._faults: dict[str, str] = {}
        self.settings = Settings.read(environment)
        self._saved = self.settings.saved()

    def skip_unusable(self, name: str, check: Callable[[Settings], object]) -> None:
        """Use the default of a saved setting that cannot be used, such as a folder that is gone, and show the fault.

        Raises:
            SettingError: the setting is from the environment.
        """
        try:
            check(self.settings)
        except SettingError as error:
            if self._source(name) != "saved":
                raise
            logger.error("a saved setting cannot be used: %s", error.detail)
            self._faults[name] = error.detail
            self.settings = self.settings.model_copy(update={name: Settings.model_fields[name].default})

    def add(self, part: Part, stack: ExitStack, *, is_started: bool = False) -> None:
        """Start a part unless it is started already; `stack` stops it. Raises `SettingError`."""
        self._parts.append(part)
        stack.callback(part.running.close)
        if not is_started:
            self._start(part)

    def state(self) -> SettingList:
        meanings = Settings.meanings()
        return SettingList(
            settings=[self._setting(name, meanings[name]) for name in Settings.model_fields],
            file=str(self.settings.data_dir / SAVED),
            keyed=self.settings.has_key,
            reachable=is_reachable(self._environment),
        )

    @property
    def faults(self) -> dict[str, str]:
        """The settings that cannot be used, by variable, with the reason."""
        return {variable(name): fault for name, fault in self._faults.items()}

    def change(self, change: SettingsChange) -> SettingList:
        """Save new values, and restart the parts that use them; return the new state.

        Raises:
            SettingFixed: a setting is in the environment, which overrides saved ones.
            Invalid: a value cannot be used. Then nothing has changed.
        """
        given = {name: getattr(change, name) for name in change.model_fields_set}
        with self._lock:
            for name in given:
                if self._source(name) == "environment":
                    raise SettingFixed(f"{variable(name)} is set in the environment. Change it there, then restart kb.")
            texts = {name: shown_value(value) for name, value in given.items()}
            saved = {name: value for name, value in {**self._saved, **texts}.items() if value}
            affected = [part for part in self._parts if given.keys() & set(part.names)]
            settings = self._checked(saved, texts, affected)
            write_private(self.settings.data_dir / SAVED, json.dumps(saved, indent=1, ensure_ascii=False))
            self._saved, self.settings = saved, settings
            for part in affected:
                self._restart(part)
        return self.state()

    def _checked(self, saved: Mapping[str, str], changed: Mapping[str, str | None], parts: Iterable[Part]) -> Settings:
        """Return the settings with these saved values, if every value can be used.

        Raises:
            Invalid: a value cannot be used.
        """
        for name, value in changed.items():
            if name not in self.settings.changeable:
                raise Invalid(f"{variable(name)}: kb can only back up SQLite databases.")
            if value and not value.isprintable():
                raise Invalid(f"{variable(name)}: it may contain only printable characters.")
            if value and name.endswith("_dir") and not (value.startswith("~/") or Path(value).is_absolute()):
                raise Invalid(f"{variable(name)}: enter the full path of the folder, such as /home/ada/kb.")
        try:
            settings = Settings.read_with(saved, self._environment)
            for part in parts:
                part.check(settings)
        except SettingError as error:
            raise Invalid(error.detail) from None
        return settings

    def _restart(self, part: Part) -> None:
        part.running.close()
        for name in part.names:
            self._faults.pop(name, None)
        try:
            self._start(part)
        except (SettingError, OSError) as error:  # it could be used a moment ago
            logger.exception("could not apply the settings %s", part.names)
            self._faults[part.names[0]] = str(error)

    def _start(self, part: Part) -> None:
        if started := part.start(self.settings):
            part.running.enter_context(started)

    def _source(self, name: str) -> Source:
        if name == "api_key_file" and self._uses_first_key:
            return "saved"
        if self._environment.get(variable(name)):
            return "environment"
        return "saved" if name in self._saved else "default"

    @property
    def _uses_first_key(self) -> bool:
        """Whether kb requires the first key, made before its start or since."""
        settings = self.settings
        is_set = settings.api_key or settings.api_key_file not in (None, settings.first_key)
        return not is_set and settings.has_key

    def _setting(self, name: str, meaning: str) -> Setting:
        value = getattr(self.settings, name)
        if name == "api_key_file" and self._uses_first_key:
            value = self.settings.first_key
        fault = self._faults.get(name)
        return Setting(
            name=name,
            variable=variable(name),
            value=self._saved.get(name) if fault else shown_value(value),
            is_secret=isinstance(value, SecretStr),
            source=self._source(name),
            changeable=name in self.settings.changeable,
            about=meaning[0].upper() + meaning[1:],
            fault=fault,
        )


def shown_value(value: object) -> str | None:
    """Return a value as written in the environment, without secrets."""
    if value in (None, "") or isinstance(value, SecretStr):
        return None
    if isinstance(value, bool):
        return str(int(value))
    text = f"{value:g}" if isinstance(value, float) else str(value).strip()
    return OPTIONS.sub("", USER.sub("", text)) if "://" in text else text


def is_reachable(environment: Mapping[str, str]) -> bool:
    """Whether other machines may connect: kb listens on more than loopback, or serves other host names."""
    host = environment.get("KB_HOST", "").strip("[] ")
    if environment.get("KB_ALLOWED_HOSTS"):
        return True
    try:
        return bool(host) and not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def check_backup_folder(settings: Settings) -> None:
    """Refuse a folder that cannot receive backups.

    Raises:
        SettingError: it cannot be written, contains other files, or is in the inbox or among the files of kb.
    """
    folder = settings.backup_dir
    if folder is None:
        return
    refuse_own_folders("KB_BACKUP_DIR", folder, settings)
    if settings.inbox_dir and is_within(folder, settings.inbox_dir):
        raise SettingError(f"KB_BACKUP_DIR: {folder} is in the inbox, so kb would add each backup. Choose another.")
    try:
        refuse_occupied(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except StoreError as error:
        raise SettingError(f"KB_BACKUP_DIR: {error.detail}") from None
    except OSError as error:
        hint = ownership(folder) if isinstance(error, PermissionError) else ""
        raise SettingError(f"KB_BACKUP_DIR: kb cannot use {folder}: {error.strerror or error}.{hint}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SettingError(f"KB_BACKUP_DIR: kb has no permission to write to {folder}.{ownership(folder)}")


def check_inbox_folder(settings: Settings) -> None:
    """Refuse a folder that cannot be the inbox.

    Raises:
        SettingError: it does not exist, or kb itself writes there.
    """
    if settings.inbox_dir:
        folder = settings.inbox_dir
        if not folder.is_dir():
            raise SettingError(f"KB_INBOX_DIR: the folder {folder} does not exist. Create it, or choose another.")
        if is_within(settings.data_dir, folder):  # each queued file would create another one
            raise SettingError(f"KB_INBOX_DIR: kb keeps its own files in {folder}. Choose another folder.")
        refuse_own_folders("KB_INBOX_DIR", settings.inbox_dir, settings)
        if settings.backup_dir and is_within(settings.backup_dir, settings.inbox_dir):
            raise SettingError(f"KB_INBOX_DIR: {settings.inbox_dir} contains kb's backups. Choose another folder.")


def is_within(data_dir: Path, folder: Path) -> bool:
    """Return whether a folder visibly contains the data folder."""
    data_dir, folder = data_dir.resolve(), folder.resolve()
    return data_dir.is_relative_to(folder) and not any(
        part.startswith(".") for part in data_dir.relative_to(folder).parts
    )


def refuse_own_folders(name: str, folder: Path, settings: Settings) -> None:
    """Refuse a folder among the files of kb, which the inbox would add again, or one that overlaps the notes folder.

    Raises:
        SettingError: the folder is in one of them.
    """
    one, notes = folder.resolve(), settings.notes_dir
    for own in filter(None, (settings.files_dir, settings.staging_dir, notes)):
        two = own.resolve()
        if one.is_relative_to(two) or (own is notes and two.is_relative_to(one)):
            raise SettingError(f"{name}: kb keeps its own files in {own}. Choose a separate folder.")
