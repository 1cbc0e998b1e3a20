"""Fill the columns that are new in version 3, and define the functions that fill.sql needs."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from unicodedata import normalize

import apsw

from kb.index.words.segmentation import segmented

LINE_CHARS = 80


def fill(connection: apsw.Connection) -> None:
    for name, function in FUNCTIONS.items():
        connection.create_scalar_function(name, function, 1, deterministic=True)
    connection.execute(files(__package__).joinpath("fill.sql").read_text("utf-8"))


def _utc(value: object) -> str | None:
    """Return a time in the format of version 3, or None; times without a zone are UTC."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", value):
        return value
    with suppress(ValueError, OverflowError, OSError):
        seconds = re.fullmatch(r"\d{9,11}(\.\d*)?", str(value))
        moment = datetime.fromtimestamp(float(str(value)), UTC) if seconds else datetime.fromisoformat(str(value))
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03}"
    return None


def _json_strings(value: object) -> str:
    """Return tags as a JSON array, from such an array or from comma-separated words."""
    names: object = str(value or "").split(",")
    with suppress(ValueError):
        names = json.loads(str(value))
    if not isinstance(names, list):
        names = [names]
    return json.dumps([str(name).strip() for name in names if str(name or "").strip()], ensure_ascii=False)


def _first_line(text: object) -> str:
    lines = (" ".join(line.strip("#*_-> \t").split()) for line in str(text or "").splitlines())
    return next(filter(None, lines), "")[:LINE_CHARS]


def _nfc(text: object) -> str | None:
    return None if text is None else normalize("NFC", str(text))


def _blank_end(text: str) -> str:
    return text[len(text.rstrip()) :]


FUNCTIONS: dict[str, Callable[..., object]] = {
    "utc": _utc,
    "json_strings": _json_strings,
    "file_name": lambda path: PurePosixPath(str(path).replace("\\", "/")).name if path else None,
    "first_line": _first_line,
    "sha256": lambda text: sha256(str(text).encode()).hexdigest(),
    "characters": lambda text: len(str(text)),
    "line_ends": lambda text: str(text).count("\n"),
    "last_blank": _blank_end,
    "nfc": _nfc,
    "segmented": segmented,
}
"""The functions of fill.sql. (SQL's own `length` stops at a NUL.)"""
