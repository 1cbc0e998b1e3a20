"""Parts of the engine, for the commands that work without its server. The engine may not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kb_cli.runtime.exit_codes import LocalError


def require(module: str, extras: str = "engine,gateway,cpu") -> Any:  # noqa: ANN401 - a module
    """Return a module of the engine; `extras` are what it needs.

    Raises:
        LocalError: they are not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise LocalError(f"{error.name} is not installed; this needs 'kb-local[{extras}]'.") from None
