"""A sandbox that gives what no reader reads to the extractors that the settings name."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kb.api.errors import Stopped, Unreadable
from kb.formats.extracted import Extracted, Section
from kb.formats.opaque import Opaque
from kb.parser.extractor_run import ExtractorRun
from kb.parser.sandbox import Limits, Sandbox, environment

if TYPE_CHECKING:
    from kb.parser.extractors import Extractor, Extractors


class ExtractingSandbox(Sandbox):
    """Reads files, some with the help of a program or a service outside of kb.

    What that prints is read in the sandbox, as if it had come as a file.

    Args:
        limits: what reading one file may take.
        extractors: which there are.
        seconds: how long they may take over one file.
        folder: where they may write, each into a folder of its own; by default that of temporary files.
    """

    def __init__(self, limits: Limits, extractors: Extractors, seconds: float, folder: Path | None = None) -> None:
        super().__init__(limits)
        self.extractors = extractors
        self.seconds = seconds
        self.folder = folder
        self._run: ExtractorRun | None = None

    @property
    def extracts(self) -> list[str]:
        return self.extractors.suffixes

    @property
    def is_extracting(self) -> bool:
        return self._run is not None

    def stop(self) -> None:
        super().stop()
        if run := self._run:
            run.stop()

    def extract(self, path: Path, filename: str, *, is_part: bool = False) -> tuple[str, Extracted]:
        deadline = time.monotonic() + self.seconds
        characters = self.limits.characters(path.stat().st_size, is_part=is_part)
        if extractor := self.extractors.of_name(filename):
            return self._read(extractor, path, filename, characters, deadline)
        try:
            return super().extract(path, filename, is_part=is_part)
        except Opaque as opaque:
            if extractor := self.extractors.of_kind(opaque.kind):
                return self._read(extractor, path, filename, characters, deadline)
            extractor = self.extractors.of_kind("image")
            if extractor is None or opaque.kind != "scan":
                raise
            return self._read_pages(extractor, path, opaque.pages, characters, deadline)

    def _read_pages(
        self, extractor: Extractor, path: Path, count: int, characters: int, deadline: float
    ) -> tuple[str, Extracted]:
        """Return what an extractor for pictures finds on the pages of a PDF."""
        if count > self.limits.pages:
            raise Unreadable(self.limits.too_many_pages(count))
        text, sections = "", list[Section]()
        for number in range(1, count + 1):
            with tempfile.NamedTemporaryFile(prefix="kb-page-", suffix=".png", dir=self.folder) as picture:
                picture.write(self.picture_to_read(path, number))
                picture.flush()
                page = self._read(extractor, Path(picture.name), "page.png", characters, deadline, may_be_empty=True)
            if found := page[1].text:
                sections.append(Section(len(text), len(text) + len(found) + 1, page=number))
                text += f"{found}\n"
            if len(text) > characters:
                raise Unreadable(self.limits.too_many_characters(characters))
        if not text:
            raise Unreadable(f"its extractor {extractor.name} found no text")
        return "pdf", Extracted(None, text, tuple(sections))

    def _read(
        self,
        extractor: Extractor,
        path: Path,
        filename: str,
        characters: int,
        deadline: float,
        *,
        may_be_empty: bool = False,
    ) -> tuple[str, Extracted]:
        too_slow = f"its extractor {extractor.name} took more than {self.seconds:g} seconds (KB_EXTRACT_SECONDS)"
        self._run = ExtractorRun(extractor, self.limits, deadline, too_slow, self.folder)
        if self._stopped:
            raise Stopped
        try:
            printed = self._run.read(path, filename, characters, environment())
        finally:
            self._run = None
        if not printed.strip():
            if may_be_empty:
                return "text", Extracted.of_text("")
            raise Unreadable(f"its extractor {extractor.name} found no text")
        return self._as_file(printed, "page.txt" if may_be_empty else "")

    def _as_file(self, printed: bytes, name: str) -> tuple[str, Extracted]:
        """Return what the sandbox makes of what an extractor printed; files in it are none of its own."""
        with tempfile.NamedTemporaryFile(prefix="kb-extracted-", dir=self.folder) as file:
            file.write(printed.replace(b"\f", b"\n").replace(b"\0", b""))
            file.flush()
            with suppress(Opaque):
                return super().extract(Path(file.name), name)
        raise Unreadable("its extractor gave no text")
