"""Where the engine is and with which key: from the environment, or from a file with profiles (requirement L-3)."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kb.api.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENGINE_URL: Final = "http://127.0.0.1:8000"
MCP_PATH: Final = "/mcp"
VARIABLES: Final = {
    "engine_url": "KB_ENGINE_URL",
    "api_key": "KB_API_KEY",
    "mcp_url": "KB_MCP_URL",
    "mcp_api_key": "KB_MCP_API_KEY",
}
KEY_OF: Final = {"api_key": "engine_url", "mcp_api_key": "mcp_url"}
"""Which server each key is for."""

SECRETS: Final = tuple(KEY_OF)
PROFILE_VARIABLE: Final = "KB_PROFILE"
PROFILE: Final[ContextVar[str | None]] = ContextVar("profile", default=None)
"""The profile that --profile names."""

READABLE_BY_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it comes from."""

    value: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class Config:
    """What the command line needs to know of one server.

    Args:
        settings: by the names of `VARIABLES`; a key may be missing.
        profile: the name of the profile they come from.
        profiles: the names of all profiles.
    """

    settings: Mapping[str, Setting]
    profile: str | None
    profiles: tuple[str, ...]

    @property
    def engine_url(self) -> str:
        """Where the engine is."""
        return self.settings["engine_url"].value

    @property
    def api_key(self) -> str | None:
        """The engine's key."""
        return self._key("api_key")

    @property
    def mcp_url(self) -> str:
        """Where agents connect."""
        return self.settings["mcp_url"].value

    @property
    def mcp_api_key(self) -> str | None:
        """The agents' key."""
        return self._key("mcp_api_key")

    def _key(self, name: str) -> str | None:
        return self.settings[name].value if name in self.settings else None


def config_path() -> Path:
    """The configuration file.

    `$XDG_CONFIG_HOME/kb/config.toml`, or on Windows `%APPDATA%/kb/config.toml`, or `~/.config/kb/config.toml`.
    """
    folder = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    return Path(folder or Path.home() / ".config") / "kb" / "config.toml"


def read() -> Config:
    """The configuration; the environment wins over the file, and an empty variable counts as unset.

    A profile that --profile or KB_PROFILE names is taken whole, and a key of the file goes to no other server than the
    file's.

    Raises:
        SettingError: a value or the file is wrong.
    """
    path = config_path()
    content = _from_file(path)
    profiles = content.pop("profiles", {})
    preferred = content.pop("profile", None)
    asked_for = PROFILE.get() or os.environ.get(PROFILE_VARIABLE)
    profile = asked_for or preferred
    settings = dict(
        _settings(_profile(profiles, profile, path), f"{path}: profiles.{profile}.")
        if profile
        else _settings(content, f"{path}: ")
    )
    if not asked_for:
        variables = {
            name: Setting(value, variable)
            for name, variable in VARIABLES.items()
            if (value := os.environ.get(variable))
        }
        settings = _of_same_servers(settings, variables) | variables
    return Config(_checked(_complete(settings)), profile, tuple(profiles))


def _settings(values: Mapping[str, str], where: str) -> Iterator[tuple[str, Setting]]:
    for name, value in values.items():
        if value:
            yield name, Setting(value, f"{where}{name}")


def _of_same_servers(settings: dict[str, Setting], variables: dict[str, Setting]) -> dict[str, Setting]:
    """What of the file counts beside the variables: its keys go to no other server than its own."""
    if not settings.keys() & KEY_OF.values():
        return settings
    own, used = _complete(dict(settings)), _complete(settings | variables)
    return {
        name: setting
        for name, setting in settings.items()
        if name not in KEY_OF or own[KEY_OF[name]].value == used[KEY_OF[name]].value
    }


def _complete(settings: dict[str, Setting]) -> dict[str, Setting]:
    engine_url = settings.setdefault("engine_url", Setting(ENGINE_URL, "default")).value
    settings.setdefault("mcp_url", Setting(engine_url.rstrip("/") + MCP_PATH, "from engine_url"))
    return settings


def _checked(settings: dict[str, Setting]) -> dict[str, Setting]:
    for name, setting in settings.items():
        (_check_key if name in SECRETS else _check_url)(setting.value, setting.source)
    return settings


def _profile(profiles: Mapping[str, dict[str, str]], name: str, path: Path) -> dict[str, str]:
    if name not in profiles:
        raise SettingError(f"{path}: there is no profile {name!r}; there are {', '.join(profiles) or 'none'}.")
    return profiles[name]


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = _parse(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingError(f"{path}: cannot be read: {error.strerror}.") from None
    if any(name in table for name in SECRETS for table in (values, *values.get("profiles", {}).values())):
        _warn_if_readable(path)
    return values


def _parse(content: bytes, path: Path) -> dict[str, Any]:
    import tomllib

    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: not valid TOML: {error}") from None
    profiles = values.get("profiles", {})
    if not (isinstance(profiles, dict) and all(isinstance(table, dict) for table in profiles.values())):
        raise SettingError(f"{path}: profiles must be tables such as [profiles.work].")
    _check_names({name: value for name, value in values.items() if name != "profiles"}, (*VARIABLES, "profile"), path)
    for table in profiles.values():
        _check_names(table, tuple(VARIABLES), path)
    return values


def _check_names(values: Mapping[str, object], names: tuple[str, ...], path: Path) -> None:
    for name, value in values.items():
        if name not in names:
            raise SettingError(f"{path}: there is no setting {name!r}; there are {', '.join(names)}.")
        if not isinstance(value, str):
            raise SettingError(f"{path}: {name} must be a text in quotes.")


@cache  # a command may read its configuration several times
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
