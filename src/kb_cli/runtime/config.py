"""The addresses and keys of the engine, from the environment or a file with profiles (requirement L-3)."""

import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kb.api.errors import SettingError
from kb.running_engine import FIRST_KEY, data_folder, find_running, first_key, local_port, recorded_folder

DEFAULT_ENGINE_URL: Final = "http://127.0.0.1:8000"
MCP_PATH: Final = "/mcp"
ANY_PORT: Final = "0"
VARIABLES: Final = {
    "engine_url": "KB_ENGINE_URL",
    "api_key": "KB_API_KEY",
    "mcp_url": "KB_MCP_URL",
    "mcp_api_key": "KB_MCP_API_KEY",
}
URL_OF_KEY: Final = {"api_key": "engine_url", "mcp_api_key": "mcp_url"}
"""The URL to which each key belongs."""

SECRETS: Final = tuple(URL_OF_KEY)
RUNS_HERE: Final = "the engine that runs here"
PROFILE_VARIABLE: Final = "KB_PROFILE"
selected_profile: Final = ContextVar[str | None]("selected_profile", default=None)
"""The profile from --profile, which overrides the variable."""

OTHERS_MAY_READ: Final = 0o077


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its source."""

    value: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class Config:
    """The command line's settings for one server.

    Args:
        settings: the values by their names in `VARIABLES`; a key may be missing.
        profile: the name of the selected profile.
    """

    settings: Mapping[str, Setting]
    profile: str | None
    profiles: tuple[str, ...]

    @property
    def engine_url(self) -> str:
        """The address of the engine."""
        return self.settings["engine_url"].value

    @property
    def api_key(self) -> str | None:
        """The API key of the engine."""
        return self._key("api_key")

    @property
    def mcp_url(self) -> str:
        """The address of the MCP endpoint for agents."""
        return self.settings["mcp_url"].value

    @property
    def mcp_api_key(self) -> str | None:
        """The key of the MCP endpoint for agents."""
        return self._key("mcp_api_key")

    def _key(self, name: str) -> str | None:
        return self.settings[name].value if name in self.settings else None


def made_key(url: str) -> str | None:
    """Return the first key of an engine of this account on this machine."""
    folder = recorded_folder(url) or data_folder()
    key = first_key(folder)
    running = find_running(folder) if key else None
    return key if running and local_port(url) == local_port(running.url) else None


def key_headers(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def config_path() -> Path:
    """Return the path of the configuration file.

    `$XDG_CONFIG_HOME/kb/config.toml`, or on Windows `%APPDATA%/kb/config.toml`, or `~/.config/kb/config.toml`.
    """
    folder = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    return Path(folder or Path.home() / ".config") / "kb" / "config.toml"


def load_config() -> Config:
    """Load the configuration; the environment overrides the file, and an empty variable counts as unset.

    A profile from --profile or KB_PROFILE ignores the environment. A key from the file is sent only to the server in
    the file.

    Raises:
        SettingError: a value or the file is invalid.
    """
    path = config_path()
    content = _load_file(path)
    profiles = content.pop("profiles", {})
    preferred = content.pop("profile", None)
    chosen = selected_profile.get() or os.environ.get(PROFILE_VARIABLE)
    profile = chosen or preferred
    if profile and profile not in profiles:
        known = f"Its profiles are {', '.join(profiles)}" if profiles else "The file has no profiles"
        raise SettingError(f"{path}: the profile {profile!r} does not exist. {known}.")
    if profile:
        settings = _file_settings(profiles[profile], f"{path}: profiles.{profile}.")
    else:
        settings = _file_settings(content, f"{path}: ")
    if not chosen:
        values = {name: (os.environ.get(variable), variable) for name, variable in VARIABLES.items()}
        variables = {name: Setting(_normalized(name, value), by) for name, (value, by) in values.items() if value}
        settings = _without_foreign_keys(settings, variables) | variables
    settings = _with_defaults(settings)
    for name, setting in settings.items():
        (_check_key if name in SECRETS else _check_url)(setting.value, setting.source)
    return Config(settings, profile, tuple(profiles))


def _file_settings(values: Mapping[str, str], where: str) -> dict[str, Setting]:
    return {name: Setting(_normalized(name, value), f"{where}{name}") for name, value in values.items() if value}


def _normalized(name: str, value: str) -> str:
    """Return a value in its normal form: addresses copied from browsers end with a slash."""
    return value if name in SECRETS else value.rstrip("/")


def _without_foreign_keys(settings: dict[str, Setting], variables: dict[str, Setting]) -> dict[str, Setting]:
    """Return the file's settings to combine with the variables, without the keys of other servers."""
    if not settings.keys() & URL_OF_KEY.values():
        return settings
    own, used = _with_defaults(settings), _with_defaults(settings | variables)
    return {
        name: setting
        for name, setting in settings.items()
        if name not in URL_OF_KEY or own[URL_OF_KEY[name]].value == used[URL_OF_KEY[name]].value
    }


def _with_defaults(settings: dict[str, Setting]) -> dict[str, Setting]:
    settings = dict(settings)
    if "engine_url" not in settings:
        settings["engine_url"] = _engine_here()
        folder = data_folder()
        if settings["engine_url"].source.startswith(RUNS_HERE) and (key := first_key(folder)):
            settings = dict.fromkeys(SECRETS, Setting(key, str(folder / FIRST_KEY))) | settings
    settings.setdefault("mcp_url", Setting(settings["engine_url"].value + MCP_PATH, "from engine_url"))
    return settings


@cache
def _engine_here() -> Setting:
    """Return the address from KB_PORT, or the one of an engine that runs on this machine, or the default."""
    if (port := os.environ.get("KB_PORT", "")) not in ("", ANY_PORT):
        return Setting(f"http://127.0.0.1:{port}", "KB_PORT")
    if running := find_running(data_folder()):
        return Setting(running.url, f"{RUNS_HERE} (process {running.pid})")
    return Setting(DEFAULT_ENGINE_URL, "default")


def _load_file(path: Path) -> dict[str, Any]:
    try:
        values = _parse(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingError(f"{path}: kb cannot read this file: {error.strerror}.") from None
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
            raise SettingError(f"{path}: {name!r} is not a setting. The settings are {', '.join(names)}.")
        if not isinstance(value, str):
            raise SettingError(f"{path}: {name} must be a string in quotes.")


@cache  # a command may read its configuration several times
def _warn_if_readable(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & OTHERS_MAY_READ:
        print(f"kb: warning: other users can read the key in {path}. Run: chmod 600 {path}", file=sys.stderr)


def _check_url(url: str, source: str) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SettingError(f"{source}: {url!r} is not a valid URL. Use one such as {DEFAULT_ENGINE_URL}.")


def _check_key(key: str, source: str) -> None:
    if not (key.isascii() and key.isprintable()):
        raise SettingError(
            f"{source}: the key contains characters other than printable ASCII. Copy it again without them."
        )
