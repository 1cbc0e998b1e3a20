"""Tables of all settings: names and bounds come from the classes, meanings from their docstrings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import SecretStr

from kb.asgi.metrics import MetricsSettings as MetricsSettings
from kb.running_engine import data_folder
from kb.settings import Settings as EngineSettings
from kb.settings import variable
from kb.telemetry.logging import LogSettings
from kb_cli.runtime.config import VARIABLES, Config
from kb_cli.server import ServeSettings as ServeSettings
from kb_mcp.settings import GatewaySettings as GatewaySettings
from tests.docs.reference import markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from kb.settings import EnvSettings

INTRO = (
    "The environment variables of kb."
    " [Configuration](../configuration.md) explains profiles and the configuration file."
)
CLASSES: dict[str, tuple[type[EnvSettings], str]] = {
    "Serving": (ServeSettings, "Read by `kb serve`."),
    "Engine": (EngineSettings, "Read by the engine, with `kb serve` and in a container."),
    "MCP gateway": (GatewaySettings, "Read by the gateway, with `kb serve` and in a container of its own."),
    "Metrics": (MetricsSettings, "Read by `/metrics` ([Monitoring](../monitoring.md))."),
    "Logs": (LogSettings, "Read by every server."),
}
DEFAULTS: dict[object, str] = {data_folder: "`$XDG_DATA_HOME/kb`, otherwise `~/.local/share/kb`"}
TYPES = {bool: "`0` or `1`", int: "integer", float: "number", Path: "path", SecretStr: "key"}
BOUNDS = {Ge: ("ge", "at least"), Gt: ("gt", "more than"), Le: ("le", "at most")}


def page() -> str:
    """Return a table for each class, and one for the command line."""
    tables = [
        markdown.page(f"## {title}", intro, settings_table(settings)) for title, (settings, intro) in CLASSES.items()
    ]
    return markdown.page(
        "# Settings", INTRO, *tables, "## Command line", "Read by every other command.", command_line()
    )


def settings_table(settings: type[EnvSettings]) -> str:
    """Return the settings of a class."""
    meanings = settings.meanings()
    return markdown.table(
        ("Variable", "Default", "Values", "Meaning"),
        (
            (markdown.code(variable(name)), default(field), values(field), sentence(meanings[name]))
            for name, field in settings.model_fields.items()
        ),
    )


def command_line() -> str:
    """Return the settings of the command line."""
    return markdown.table(
        ("Variable", "In the file", "Meaning"),
        (
            (markdown.code(variable), markdown.code(name), inspect.getdoc(getattr(Config, name)) or "")
            for name, variable in VARIABLES.items()
        ),
    )


def default(field: FieldInfo) -> str:
    """Return the default of a setting."""
    if field.default_factory:
        return DEFAULTS[field.default_factory]
    return "" if field.default in (None, "") else markdown.code(plain(field.default))


def plain(value: object) -> object:
    """Return a value as written in the environment."""
    return int(value) if isinstance(value, bool) else value


def values(field: FieldInfo) -> str:
    """Return the type and the bounds of a setting."""
    return ", ".join([*kinds(field.annotation), *bounds(field)])


def kinds(annotation: Any) -> Iterator[str]:
    """Yield the names of a type; none for text."""
    if get_origin(annotation) is Literal:
        yield ", ".join(f"`{choice}`" for choice in get_args(annotation))
    elif annotation in TYPES:
        yield TYPES[annotation]
    else:
        for part in get_args(annotation):
            yield from kinds(part)


def bounds(field: FieldInfo) -> Iterator[str]:
    """Yield the minimum and the maximum."""
    for bound in field.metadata:
        if type(bound) in BOUNDS:
            attribute, words = BOUNDS[type(bound)]
            yield f"{words} {getattr(bound, attribute):,}"


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."
