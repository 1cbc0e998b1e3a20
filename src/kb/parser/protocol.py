"""The messages between the engine and its parser over pipes: frames, each with its length before its bytes."""

import json
import os
import re
import shutil
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError

from kb.api.fields import Tag
from kb.api.limits import MAX_TITLE
from kb.api.omissions import KINDS
from kb.formats.installed_types import FORMATS
from kb.formats.text.builder import LONGEST_HEADING
from kb.formats.text.extracted import (
    LONGEST_MESSAGE_ID,
    MOST_FILES,
    MOST_MESSAGE_IDS,
    Attachment,
    Extracted,
    Picture,
    Scan,
    Section,
)

_LENGTH: Final = struct.Struct(">Q")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TAG: Final = TypeAdapter[str](Tag)
_COLLECTION: Final = "collection:"

MAX_LEVELS: Final = 9
"""The maximum number of headings above a section; the innermost are kept."""

MAX_PATH: Final = 600
"""The maximum number of characters of these headings together."""

MAX_ALIASES: Final = 600
"""The maximum number of characters of a document's other names together."""

MAX_DATE: Final = 40
MAX_PICTURES: Final = 100
MAX_OMITTED: Final = 1 << 53
OmittedKind = Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$")]


class OverLimit(Exception):
    """A frame is longer, or a document larger, than its recipient allows."""


class Malformed(Exception):
    """A message is invalid."""


def send(pipe: BinaryIO, message: dict[str, Any], *blobs: bytes) -> None:
    for frame in (json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"), *blobs):
        pipe.write(_LENGTH.pack(len(frame)))
        pipe.write(frame)
    pipe.flush()


def send_file(pipe: BinaryIO, file: BinaryIO) -> None:
    """Write the content of a file as one frame."""
    pipe.write(_LENGTH.pack(os.fstat(file.fileno()).st_size))
    shutil.copyfileobj(file, pipe)
    pipe.flush()


def receive(pipe: BinaryIO, limit: int | None = None) -> dict[str, Any]:
    """Read a message.

    Raises:
        EOFError: the other side is gone.
        OverLimit: the message has more than `limit` bytes.
        Malformed: it is not a message.
    """
    try:
        message = json.loads(receive_bytes(pipe, limit))
    except (ValueError, RecursionError) as error:
        raise Malformed("it is not JSON") from error
    if not isinstance(message, dict):
        raise Malformed("it is not a message")
    return message


def receive_bytes(pipe: BinaryIO, limit: int | None = None) -> bytes:
    """Read the bytes of one frame. Raises `EOFError` and `OverLimit` like `receive`."""
    (length,) = _LENGTH.unpack(_read_exactly(pipe, _LENGTH.size))
    if limit is not None and length > limit:
        raise OverLimit
    return _read_exactly(pipe, length)


PLAIN: Final = ("title", "text", "tags", "date", "aliases", "scans", "message_ids")
"""The fields of a document that a message has unchanged."""


def pack(doc_type: str, extracted: Extracted) -> dict[str, Any]:
    """Return a document as a message; the bytes of its attachments and then of its pictures follow it."""
    return {
        "doc_type": doc_type,
        **{name: getattr(extracted, name) for name in PLAIN},
        "sections": [[section.start, section.end, section.heading, section.page] for section in extracted.sections],
        "attachments": [attachment.filename for attachment in extracted.attachments],
        "pictures": [[picture.place, picture.page, picture.name] for picture in extracted.pictures],
        "omitted": dict(extracted.omitted),
    }


class ParserReply(BaseModel):
    """A document as a message, with strict types because its sender is untrusted.

    A section is its start, its end, its heading path and its page; a scan is its page and its heading path; a picture
    is its place, its page and its name.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    doc_type: str
    title: str | None
    text: str
    sections: list[Annotated[tuple[int, int, list[str], Annotated[int, Field(ge=1)] | None], Strict(strict=False)]]
    attachments: Annotated[list[str], Field(max_length=MOST_FILES)]
    tags: list[str]
    date: str | None
    aliases: list[str]
    scans: list[Annotated[tuple[Annotated[int, Field(ge=1)], list[str]], Strict(strict=False)]]
    pictures: Annotated[
        list[Annotated[tuple[int, Annotated[int, Field(ge=1)] | None, str], Strict(strict=False)]],
        Field(max_length=MAX_PICTURES),
    ]
    omitted: dict[OmittedKind, Annotated[int, Field(ge=1, le=MAX_OMITTED)]]
    message_ids: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_MESSAGE_ID, pattern=r"^[!-;=?-~]*$")]],
        Field(max_length=MOST_MESSAGE_IDS),
    ]


def check(message: dict[str, Any]) -> ParserReply:
    try:
        reply = ParserReply.model_validate(message)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise Malformed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if reply.doc_type not in FORMATS:
        raise Malformed("doc_type: unknown type")
    return reply


def unpack(reply: ParserReply, blobs: Sequence[bytes], max_chars: int, max_tags: int, max_tag_chars: int) -> Extracted:
    """Return a document's content, with its names cut to their maximum length.

    Args:
        blobs: the bytes of its attachments, and then of its pictures.
        max_chars: the maximum length of its text, including headings.
        max_tags: the maximum number of tags that it may set; further and invalid ones are left out.
        max_tag_chars: the maximum length of a tag.

    Raises:
        Malformed: its sections do not cover its text exactly.
        OverLimit: it contains too much text.
    """
    sections = tuple(_sections(reply))
    headings = sum(len(heading) for section in sections for heading in section.heading)
    if len(reply.text) + headings > max_chars:
        raise OverLimit
    return Extracted(
        _line(reply.title or "", MAX_TITLE) or None,
        reply.text,
        sections,
        tuple(map(Attachment, reply.attachments, blobs)),
        tuple(dict.fromkeys(_tags(reply.tags, max_tag_chars)))[:max_tags],
        _date(reply.date),
        tuple(_first(MAX_ALIASES, (_line(alias, MAX_TITLE) for alias in reply.aliases))),
        tuple(_scans(reply)),
        tuple(_pictures(reply, blobs[len(reply.attachments) :])),
        reply.omitted,
        tuple(reply.message_ids),
    )


def _sections(reply: ParserReply) -> Iterator[Section]:
    position, paths = 0, dict[tuple[str, ...], tuple[str, ...]]()
    for start, end, heading, page in reply.sections:
        if start != position or end < start:
            raise Malformed(f"sections: {start} to {end} comes after {position}")
        if end == start:
            continue
        path = tuple(heading)
        if path not in paths:
            paths[path] = _path(path)
        yield Section(start, end, paths[path], page)
        position = end
    if position != len(reply.text) or "\0" in reply.text:
        raise Malformed(f"sections: they end at {position} of {len(reply.text)} characters, or one is a NUL")


def _scans(reply: ParserReply) -> Iterator[Scan]:
    page_before = 0
    for page, heading in reply.scans:
        if page <= page_before:
            raise Malformed(f"scans: page {page} follows page {page_before}")
        yield Scan(page, _path(heading))
        page_before = page


def _pictures(reply: ParserReply, blobs: Sequence[bytes]) -> Iterator[Picture]:
    place_before = 0
    for (place, page, name), data in zip(reply.pictures, blobs, strict=True):
        if not place_before <= place <= len(reply.text):
            raise Malformed(f"pictures: one is at {place}, after {place_before}")
        yield Picture(place, page, _line(name, MAX_TITLE), partial(bytes, data))
        place_before = place


def _path(headings: Sequence[str]) -> tuple[str, ...]:
    lines = (_line(heading, LONGEST_HEADING) for heading in headings[: -MAX_LEVELS - 1 : -1])
    return tuple(_first(MAX_PATH, lines))[::-1]


def _first(most: int, lines: Iterable[str]) -> Iterator[str]:
    """Yield the non-empty lines as long as they have at most `most` characters together."""
    for line in filter(None, lines):
        most -= len(line)
        if most < 0:
            return
        yield line


def _line(text: str, most: int) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())[:most].strip()


def _tags(tags: Iterable[str], most: int) -> Iterator[str]:
    """Yield the tags that the API would accept, except collections: a file does not choose its own collection."""
    for tag in tags:
        with suppress(ValidationError):
            valid = _TAG.validate_python(tag)
            if len(valid) <= most and not valid.startswith(_COLLECTION) and not _UNPRINTABLE.search(valid):
                yield valid


def _date(date: str | None) -> str | None:
    line = _line(date or "", MAX_DATE + 1)
    return line if line[:1].isdigit() and len(line) <= MAX_DATE else None


def _read_exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data
