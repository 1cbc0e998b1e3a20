"""The log of the process: one form for lines of kb and of libraries, with their context."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from kb.settings import EnvSettings, Word

LOGGERS: Final = ("kb", "kb_mcp", "kb_web", "kb_cli", "uvicorn")
"""The loggers that follow KB_LOG_LEVEL. Other libraries log details at lower levels; kb keeps only their warnings."""

LOG_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("log_context", default={})  # noqa: B039 - never changed
REQUEST_ID: Final = "X-Request-ID"
"""The header with the id of a request, which all lines about it contain."""

STANDARD: Final = {*vars(logging.makeLogRecord({})), "message", "asctime", "color_message"}


class LogSettings(EnvSettings):
    """How the process logs.

    Args:
        log_format: lines for people to read, or one JSON object per line.
        log_level: the least important lines that are written.
    """

    log_format: Annotated[Literal["console", "json"], Word] = "console"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Word] = "info"


def configure(settings: LogSettings) -> None:
    """Write the log of the whole process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else ConsoleFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level.upper())


@contextmanager
def log_context(**fields: str) -> Iterator[None]:
    """Add `fields` to every line that this task or thread writes inside the context."""
    token = LOG_CONTEXT.set({**LOG_CONTEXT.get(), **fields})
    try:
        yield
    finally:
        LOG_CONTEXT.reset(token)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `message`, then the line's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class ConsoleFormatter(logging.Formatter):
    """Time, level, logger and message, the line's own fields as `name=value`, then a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with line breaks in its message escaped so that nobody can forge a second line."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        message = f"{record.name}: {record.getMessage()}{fields}"
        line = (
            f"{_time(record)} {record.levelname:7} {message if message.isprintable() else message.translate(ESCAPED)}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


ESCAPED: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    own = {name: value for name, value in vars(record).items() if name not in STANDARD}
    return {**LOG_CONTEXT.get(), **own}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
