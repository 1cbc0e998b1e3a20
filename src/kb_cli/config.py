"""Where the engine is and with which key: from the environment, or from a file (requirement L-3)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kb.contract.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINE_URL: Final = "http://127.0.0.1:8000"
VARIABLES: Final = {"engine_url": "KB_ENGINE_URL", "api_key": "KB_API_KEY"}
READABLE_BY_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class Config:
    """What the command line needs to know of the engine."""

    engine_url: str = ENGINE_URL
    api_key: str | None = field(default=None, repr=False)


def config_path() -> Path:
    """`$XDG_CONFIG_HOME/kb/config.toml`, or `~/.config/kb/config.toml`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kb" / "config.toml"


def read() -> Config:
    """The configuration; the environment wins over the file, and an empty variable counts as unset.

    Raises:
        SettingError: a value or the file is wrong.
    """
    path = config_path()
    values = dict.fromkeys(VARIABLES, "") | _from_file(path)
    sources = {name: f"{path}: {name}" for name in VARIABLES}
    for name, variable in VARIABLES.items():
        if value := os.environ.get(variable):
            values[name], sources[name] = value, variable
    engine_url = values["engine_url"] or ENGINE_URL
    _check_url(engine_url, sources["engine_url"])
    _check_key(values["api_key"], sources["api_key"])
    return Config(engine_url, values["api_key"] or None)


def _from_file(path: Path) -> dict[str, str]:
    try:
        values = _parse(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror}.") from None
    if "api_key" in values:
        _warn_if_readable(path)
    return values


def _parse(content: bytes, path: Path) -> dict[str, str]:
    import tomllib

    try:
        values = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: not valid TOML: {error}") from None
    _check_names(values, path)
    return values


def _check_names(values: Mapping[str, object], path: Path) -> None:
    for name, value in values.items():
        if name not in VARIABLES:
            raise SettingError(f"{path}: there is no setting {name!r}; there are {' and '.join(VARIABLES)}.")
        if not isinstance(value, str):
            raise SettingError(f"{path}: {name} must be a text in quotes.")


def _warn_if_readable(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & READABLE_BY_OTHERS:
        print(f"kb: warning: others can read the key in {path}: chmod 600 {path}", file=sys.stderr)


def _check_url(url: str, source: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise SettingError(f"{source}: {url!r} is not a URL such as {ENGINE_URL}.")


def _check_key(key: str, source: str) -> None:
    if not (key.isascii() and key.isprintable()):
        raise SettingError(f"{source}: the key holds characters that cannot be sent; it must be printable ASCII.")
