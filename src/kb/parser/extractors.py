"""The programs and services for files without a reader, as `KB_EXTRACTORS` names them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, get_args
from urllib.parse import urlsplit

from kb.formats.text.external_types import SUFFIXES, Kind
from kb.parser.old_office import FILE, old_office_command

OFF: Final = "off"
LISTING_SECONDS: Final = 10

_NEXT: Final = re.compile(r"[;\n]")
SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,20}", re.IGNORECASE | re.ASCII)
_LANGUAGES: Final = re.compile(r"[A-Za-z_]{2,20}(\+[A-Za-z_]{2,20})*")


@dataclass(frozen=True, slots=True)
class Extractor:
    """A program or service that reads certain kinds of files.

    Args:
        command: the program and its arguments.
        is_service: whether it sends the file over the network, which is forbidden to the others.
        prints_text: whether its output is plain text even if it looks like a table or Markdown.
    """

    name: str
    command: tuple[str, ...]
    is_service: bool = False
    prints_text: bool = False

    @property
    def takes_path(self) -> bool:
        """Whether it gets the file's path instead of its content."""
        return any(FILE in word for word in self.command)


@dataclass(frozen=True, slots=True)
class Extractors:
    by_type: Mapping[str, Extractor] = field(default_factory=dict)

    @classmethod
    def parse(cls, named: str, languages: str = "") -> Extractors:
        """Return the extractors in the settings, and the installed programs for old office documents.

        Args:
            named: entries such as `image=tesseract - -`, separated by semicolons or line ends; `doc=off` turns one off.
            languages: the languages in which Tesseract reads pictures and scans, such as `eng+deu`; `1` is its default,
                and `0` or an empty string turns it off.

        Raises:
            ValueError: an entry is invalid, or its program is not installed.
        """
        by_type, named_types = dict[str, Extractor | None](), dict[str, Extractor | None]()
        if languages not in ("", "0"):
            by_type["image"] = _tesseract(languages)
        for entry in filter(None, map(str.strip, _NEXT.split(named))):
            types, _, target = entry.partition("=")
            extractor = None if target.strip() == OFF else _extractor(target.strip())
            for type_ in types.split(","):
                named_types[_type(type_.strip().lower())] = extractor
        by_type = old_office() | by_type | named_types
        return cls({type_: extractor for type_, extractor in by_type.items() if extractor})

    @property
    def suffixes(self) -> list[str]:
        return sorted(set(self._suffixes()))

    @property
    def has_command(self) -> bool:
        return any(not extractor.is_service for extractor in self.by_type.values())

    def of_name(self, filename: str) -> Extractor | None:
        return self.by_type.get(PurePath(filename.lower()).suffix)

    def of_kind(self, kind: Kind) -> Extractor | None:
        return self.by_type.get(kind)

    def _suffixes(self) -> Iterator[str]:
        for type_ in self.by_type:
            yield from SUFFIXES.get(type_, (type_,))
            if type_ == "image":  # the pages of a scan are also pictures
                yield from SUFFIXES["scan"]


def old_office() -> dict[str, Extractor]:
    """Return the extractors for old office documents by kind, if a program for the kind is installed."""
    commands = ((kind, old_office_command(kind)) for kind in get_args(Kind))
    return {
        kind: Extractor(command[0], (_program("sh"), *command[1]), prints_text=True)
        for kind, command in commands
        if command
    }


def _type(name: str) -> str:
    if name in get_args(Kind) or SUFFIX.fullmatch(name):
        return name
    raise ValueError(f"{name!r} is neither {', '.join(get_args(Kind))} nor a suffix such as .doc")


def _extractor(target: str) -> Extractor:
    if target.startswith(("http://", "https://")):
        return Extractor(_shown(target), (sys.executable, "-P", "-m", "kb.parser.service", target), is_service=True)
    words = shlex.split(target)
    if not words:
        raise ValueError("an entry must be a type, '=', and a command or an address, such as image=tesseract - -")
    return Extractor(words[0], (_program(words[0]), *words[1:]))


def _shown(address: str) -> str:
    """Return an address without its possible secrets, because the reasons of failed jobs name it."""
    parts = urlsplit(address)
    if not parts.hostname:
        raise ValueError(f"{address!r} is not an address")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _tesseract(languages: str) -> Extractor:
    if languages != "1" and not _LANGUAGES.fullmatch(languages):
        raise ValueError("KB_OCR must be 1, or languages as Tesseract names them, such as eng+deu")
    chosen = () if languages == "1" else ("-l", languages)
    # Several threads make it slower.
    return Extractor("tesseract", (_program("env"), "OMP_THREAD_LIMIT=1", _program("tesseract"), "-", "-", *chosen))


def check_languages(languages: str) -> None:
    """Refuse languages that Tesseract has not installed, with which it would read nothing.

    Raises:
        ValueError: a language is not installed.
    """
    if languages in ("", "0", "1"):
        return
    listing = [_program("tesseract"), "--list-langs"]
    printed = subprocess.run(listing, capture_output=True, text=True, timeout=LISTING_SECONDS, check=False).stdout  # noqa: S603 - our own arguments
    installed = printed.split("\n")[1:]
    if missing := [name for name in languages.split("+") if name not in installed]:
        raise ValueError(f"Tesseract has no language {missing[0]}. Install it, or choose from: {' '.join(installed)}")


def _program(name: str) -> str:
    path = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - a name without a slash is not a path
    if path is None:
        raise ValueError(f"the program {name!r} is not installed")
    return os.path.abspath(path)  # noqa: PTH100 - links stay: some programs look at their own name
