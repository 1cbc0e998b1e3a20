"""Parts of the engine, for commands that work without its server. The engine may not be installed."""

import os
from importlib import import_module
from typing import Any

from kb.running_engine import folder_of
from kb_cli.runtime.config import load_config
from kb_cli.runtime.exit_codes import LocalError


def require(module: str, package: str = "kb-local") -> Any:  # noqa: ANN401 - a module
    """Return a module of the engine; `package` brings its dependencies."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise LocalError(f"The Python module {error.name} is not installed. This command needs '{package}'.") from None


def data_settings() -> Any:  # noqa: ANN401 - the engine's
    """Return the engine's settings for a command that writes to the data folder; its new files will be private.

    Without KB_DATA_DIR, the folder is the one of the engine that other commands use, if it runs on this machine.

    Raises:
        LocalError: the engine is not installed.
        SettingError: a setting is invalid.
    """
    os.umask(0o077)
    folder = None if os.environ.get("KB_DATA_DIR") else folder_of(load_config().engine_url)
    settings = require("kb.settings")
    return settings.Settings.read(settings.with_flags(os.environ, data_dir=folder))
