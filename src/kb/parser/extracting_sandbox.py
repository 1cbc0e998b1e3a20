"""A sandbox that passes files without a reader to the extractors in the settings."""

import logging
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kb.api.errors import OutOfReach, Stopped, Unreadable
from kb.api.fields import Restriction
from kb.api.file_types import IMAGE
from kb.api.job_error_phrases import NO_OCR
from kb.formats.ocr_text import has_words, with_pages, with_pictures, with_remark
from kb.formats.text.external_types import Opaque, is_picture
from kb.formats.text.extracted import NO_TEXT, Extracted, Picture, Scan
from kb.parser.extractor_exec import NEEDED
from kb.parser.extractor_run import ExtractorRun, confined_extractor
from kb.parser.extractors import Extractor, Extractors
from kb.parser.sandbox import Limits, Sandbox

_ZIP: Final = b"PK\x03\x04"

logger = logging.getLogger(__name__)


class NothingFound(Unreadable):
    """An extractor found no text in a file."""


class _Limit(NamedTuple):
    """The time by which extractors must finish with a file, and the maximum length of its text."""

    deadline: float
    characters: int


class ExtractingSandbox(Sandbox):
    """Reads files, some with an external program or service.

    The sandbox reads the output of an extractor like a file.

    Args:
        seconds: the time limit for extracting one file.
        folder: the folder in which each extractor gets its own; by default the one for temporary files.
        unconfined: whether commands run even if the system cannot keep them from other files.
    """

    def __init__(
        self,
        limits: Limits,
        extractors: Extractors,
        seconds: float,
        folder: Path | None = None,
        *,
        unconfined: bool = False,
    ) -> None:
        super().__init__(limits)
        self.extractors = extractors
        self.seconds = seconds
        self.folder = folder
        self.unconfined = unconfined
        self.extractors_confined: list[Restriction] | None = None
        """The rights that commands lack as extractors, or None if there are none, or before the start."""

        self._is_started = False
        self._run: ExtractorRun | None = None

    @property
    def extracts(self) -> list[str]:
        return self.extractors.suffixes

    @property
    def is_extracting(self) -> bool:
        """Whether an extractor is reading a file, which may take minutes."""
        return self._run is not None

    def use(self, extractors: Extractors) -> None:
        self.extractors = extractors
        if self._is_started:
            self._confine()

    def start(self) -> None:
        super().start()
        self._is_started = True
        self._confine()

    def _confine(self) -> None:
        """Find out how this system confines commands, if there are any."""
        if self.extractors.has_command and self.extractors_confined is None:
            try:
                self.extractors_confined = confined_extractor(self.limits, self.folder)
            except (OSError, subprocess.SubprocessError, ValueError):
                logger.exception(
                    "could not determine how this system confines extractors; each extractor checks before it runs"
                )
                return
            log_confinement(self.extractors_confined, unconfined=self.unconfined)

    def stop(self) -> None:
        super().stop()
        if run := self._run:
            run.stop()

    def extract(self, path: Path, filename: str, *, is_part: bool = False) -> tuple[str, Extracted]:
        deadline = time.monotonic() + self.seconds
        limit = _Limit(deadline, self.limits.characters(path.stat().st_size, is_part=is_part))
        if extractor := self.extractors.of_name(filename):
            return self._read(extractor, path, filename, limit)
        try:
            reads_pictures = self.extractors.of_kind("image") is not None
            doc_type, extracted = self._parse(path, filename, is_part=is_part, pictures=reads_pictures)
        except Opaque as opaque:
            if extractor := self.extractors.of_kind(opaque.kind):
                return self._read(extractor, path, filename, limit)
            extractor = self.extractors.of_kind("image")
            if extractor is None or opaque.kind != "scan":
                raise
            return self._read_pages(extractor, path, opaque.pages, limit)
        extractor = self.extractors.of_kind("image")
        if extractor is None:
            return doc_type, with_remark(extracted, extracted.scans, NO_OCR)
        if doc_type == IMAGE:
            return self._read_image(extractor, path, filename, limit) or (doc_type, extracted)
        extracted = self._read_pictures(extractor, extracted, limit)
        return doc_type, self._read_scans(extractor, path, extracted, limit)

    def _read_image(
        self, extractor: Extractor, path: Path, filename: str, limit: _Limit
    ) -> tuple[str, Extracted] | None:
        with suppress(NothingFound):
            return self._read(extractor, path, filename, limit)
        return None

    def _read_pages(self, extractor: Extractor, path: Path, count: int, limit: _Limit) -> tuple[str, Extracted]:
        """Return the text that a picture extractor finds on the pages of a PDF."""
        if count > self.limits.pages:
            raise Unreadable(self.limits.too_many_pages(count))
        texts = dict[Scan, str]()
        for number in range(1, count + 1):
            texts[Scan(number)] = self._read_picture(extractor, self.picture_to_read(path, number), limit)
            self._check_length(texts.values(), limit)
        if not any(texts.values()):
            raise Unreadable(f"its extractor {extractor.name} found no text")
        return "pdf", with_pages(Extracted(None, "", ()), texts)

    def _read_scans(self, extractor: Extractor, path: Path, extracted: Extracted, limit: _Limit) -> Extracted:
        """Return the document with the text that an extractor finds on its scanned pages.

        If a page fails, a remark names it; the other pages keep their text.
        """
        texts, failed, reason = dict[Scan, str](), list[Scan](), ""
        for scan in extracted.scans:
            if failed and time.monotonic() >= limit.deadline:
                failed.append(scan)
                continue
            try:
                texts[scan] = self._read_picture(extractor, self.picture_to_read(path, scan.page), limit)
            except OutOfReach:
                raise
            except Unreadable as error:
                failed.append(scan)
                reason = error.detail
            self._check_length([extracted.text, *texts.values()], limit)
        return with_remark(with_pages(extracted, texts), failed, reason)

    def _read_pictures(self, extractor: Extractor, extracted: Extracted, limit: _Limit) -> Extracted:
        """Return the document with the text that an extractor finds in its pictures before the deadline."""
        texts = list[tuple[Picture, str]]()
        for picture in extracted.pictures:
            if time.monotonic() >= limit.deadline:
                break
            data = picture.read()
            if not is_picture(data):
                continue
            try:
                words = self._read_picture(extractor, data, limit)
            except OutOfReach:
                raise
            except Unreadable:
                continue
            if has_words(words):
                texts.append((picture, words))
            self._check_length([extracted.text, *(words for _, words in texts)], limit)
        whole = with_pictures(extracted, texts)
        if not whole.shows_text:
            raise Unreadable(NO_TEXT)
        return whole

    def _read_picture(self, extractor: Extractor, data: bytes, limit: _Limit) -> str:
        with tempfile.NamedTemporaryFile(prefix="kb-page-", suffix=".png", dir=self.folder) as picture:
            picture.write(data)
            picture.flush()
            return self._read(extractor, Path(picture.name), "page.png", limit, may_be_empty=True)[1].text

    def _check_length(self, texts: Iterable[str], limit: _Limit) -> None:
        if sum(map(len, texts)) > limit.characters:
            raise Unreadable(self.limits.too_many_characters(limit.characters))

    def _read(
        self, extractor: Extractor, path: Path, filename: str, limit: _Limit, *, may_be_empty: bool = False
    ) -> tuple[str, Extracted]:
        too_slow = f"its extractor {extractor.name} took more than {self.seconds:g} seconds (KB_EXTRACT_SECONDS)"
        self._run = ExtractorRun(
            extractor, self.limits, limit.deadline, too_slow, self.folder, unconfined=self.unconfined
        )
        if self._stopped:
            raise Stopped
        try:
            printed = self._run.read(path, filename, limit.characters)
        finally:
            self._run = None
        if not printed.strip():
            if may_be_empty:
                return "text", Extracted.of_text("")
            raise NothingFound(f"its extractor {extractor.name} found no text")
        name = "page.txt" if may_be_empty or extractor.prints_text else ""
        with tempfile.NamedTemporaryFile(prefix="kb-extracted-", dir=self.folder) as file:
            file.write(printed if printed.startswith(_ZIP) else printed.replace(b"\f", b"\n").replace(b"\0", b""))
            file.flush()
            with suppress(Opaque):
                return super().extract(Path(file.name), name)
        raise Unreadable("its extractor returned no text")


def log_confinement(confined: Collection[Restriction], *, unconfined: bool) -> None:
    """Log which rights extractors lack on this system, and whether they run."""
    if set(confined) >= NEEDED:
        logger.info("extractors are confined; blocked: %s", ", ".join(confined))
    elif unconfined:
        logger.warning(
            "extractors run unconfined and can read and change all your files, because this system cannot confine them"
            " and KB_EXTRACTORS_UNCONFINED is set"
        )
    else:
        logger.warning(
            "extractors do not run, because this system cannot keep them from your files;"
            " set KB_EXTRACTORS_UNCONFINED=1 to run them without protection"
        )
