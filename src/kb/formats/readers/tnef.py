"""Outlook's winmail.dat (MS-OXTNEF): a message's rich text and its files, packed into one attachment.

kb does not use tnefparse, last released in 2021: it reads no lists of recipients, and fails on damage that Outlook and
gateways leave.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from kb.api.errors import Unreadable
from kb.formats.detect import TNEF_SIGNATURE
from kb.formats.readers import outlook
from kb.formats.readers.mail import Body, Mail, render
from kb.formats.text.encoding import decode, one_line
from kb.formats.text.extracted import MOST_FILES, Attachment, Extracted

_ATTRIBUTE: Final = struct.Struct("<BHHI")
_FROM, _SUBJECT, _DATE_SENT, _BODY, _START, _END = 0x8000, 0x8004, 0x8005, 0x800C, 0x0006, 0x0007
_PROPERTIES, _RECIPIENTS, _CODE_PAGE = 0x9003, 0x9004, 0x9007
_FILE_BEGINS, _FILE_PROPERTIES, _FILE_NAME, _FILE_DATA = 0x9002, 0x9005, 0x8010, 0x800F
_TITLES: Final = (outlook.SUBJECT, 0x0E1D, 0x0049, outlook.NAME)
"""The titles of a message, of a receipt for another one, and of a list of people."""

_MEMBERS: Final = 0x8054
_MEMBER: Final = struct.Struct("<4s16sHH")
_WHERE, _STARTS, _ENDS = 0x8208, 0x820D, 0x820E
"""The place, the start and the end of a calendar item: numbers of named properties."""

_SHORT, _BOOLEAN, _OBJECT, _NARROW, _WIDE, _BINARY = 0x0002, 0x000B, 0x000D, 0x001E, 0x001F, 0x0102
_NUMBERS: Final = {_SHORT: 2, _BOOLEAN: 2, 0x0003: 4, 0x0004: 4, 0x000A: 4, 0x0005: 8, 0x0006: 8, 0x0007: 8, 0x0014: 8}
_SIZES: Final = _NUMBERS | {0x0040: 8, 0x0048: 16, 0x0000: 0, 0x0001: 0}
_SEVERAL: Final = 0x1000
_NAMED: Final = 0x8000
_MOST_VALUES: Final = 10_000
_LONGEST_NAME: Final = 1000
_MESSAGE: Final = bytes.fromhex("0703020000000000c000000000000046")
"""The bytes before a message that is an attachment of another."""


def read(data: bytes) -> Extracted:
    mail = unpack(data)
    if not (mail.bodies or mail.attachments or mail.textless or mail.headers["Subject"]):
        raise Unreadable("the Outlook package (winmail.dat) is empty or damaged")
    return render(mail)


def unpack(data: bytes) -> Mail:
    """Return the message packed in `data`; if it is damaged, the readable part."""
    item = _Item()
    for level, name, value in _attributes(data):
        if level == 1:
            _read_of_message(item, name, value)
        elif name == _FILE_BEGINS or not item.files:
            item.more_files += len(item.files) >= MOST_FILES
            item.files[MOST_FILES - 1 :] = [_File()]
        if level == 2:
            file = item.files[-1]
            if name == _FILE_NAME:
                file.name = value
            elif name == _FILE_DATA:
                file.data = value
            elif name == _FILE_PROPERTIES:
                file.properties.add(_properties(_Reader(value)))
    return _mail(item)


class _Value(NamedTuple):
    kind: int
    data: bytes
    others: tuple[bytes, ...] = ()


@dataclass
class _Properties:
    """Properties by their numbers; named ones by the number in their name."""

    numbered: dict[int, _Value] = field(default_factory=dict)
    named: dict[int, _Value] = field(default_factory=dict)

    def text(self, encoding: str, *numbers: int) -> str:
        return next(filter(None, (_text(self.numbered.get(number), encoding) for number in numbers)), "")

    def binary(self, number: int) -> bytes:
        value = self.numbered.get(number)
        return value.data if value else b""

    def number(self, *numbers: int) -> int:
        """Return the first of the properties that is a whole number other than 0."""
        values = (self.numbered.get(number) for number in numbers)
        return next(filter(None, (int.from_bytes(value.data[:4], "little") for value in values if value)), 0)

    def add(self, other: _Properties) -> None:
        """Add the missing properties from another list."""
        for number, value in other.numbered.items():
            self.numbered.setdefault(number, value)
        for number, value in other.named.items():
            self.named.setdefault(number, value)


@dataclass
class _File:
    properties: _Properties = field(default_factory=_Properties)
    name: bytes = b""
    data: bytes = b""


@dataclass
class _Item:
    properties: _Properties = field(default_factory=_Properties)
    recipients: list[_Properties] = field(default_factory=list)
    fields: dict[int, bytes] = field(default_factory=dict)
    files: list[_File] = field(default_factory=list)
    more_files: int = 0

    @property
    def encoding(self) -> str:
        page = int.from_bytes(self.fields.get(_CODE_PAGE, b"")[:4], "little")
        return f"cp{page or self.properties.number(*outlook.CODE_PAGES) or 1252}"

    def text(self, number: int) -> str:
        return _text(_Value(_NARROW, self.fields.get(number, b"")), self.encoding)


def _attributes(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the level, the name and the value of each attribute; the last one may be cut short."""
    at = len(TNEF_SIGNATURE) + 2
    while at + _ATTRIBUTE.size <= len(data):
        level, name, _, size = _ATTRIBUTE.unpack_from(data, at)
        if level not in (1, 2):  # added by gateways after the end
            return
        at += _ATTRIBUTE.size
        yield level, name, data[at : at + size]
        at += size + 2


def _read_of_message(item: _Item, name: int, value: bytes) -> None:
    if name == _PROPERTIES:
        item.properties.add(_properties(_Reader(value)))
    elif name == _RECIPIENTS:
        reader = _Reader(value)
        for _ in range(reader.number()):
            if reader.is_at_end:
                break
            item.recipients.append(_properties(reader))
    else:
        item.fields.setdefault(name, value)


class _Reader:
    """Takes values off a list of properties; past its end, they are zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Return `size` bytes, and skip their padding to a multiple of four."""
        taken = self._data[self._at : self._at + size]
        self._at += size + -size % 4
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little")


def _properties(reader: _Reader) -> _Properties:
    properties = _Properties()
    for _ in range(reader.number()):
        if reader.is_at_end:
            break
        head = reader.number()
        kind, number = head & 0xFFFF, head >> 16
        name = _name(reader) if number >= _NAMED else None
        values = list(_values(reader, kind))
        if not values:
            continue
        value = _Value(kind & ~_SEVERAL, values[0], tuple(values[1:]))
        if number < _NAMED:
            properties.numbered.setdefault(number, value)
        elif name is not None:
            properties.named.setdefault(name, value)
    return properties


def _name(reader: _Reader) -> int | None:
    """Return the number in a property's name; None if the name is text."""
    reader.take(16)
    if reader.number() == 0:
        return reader.number()
    reader.take(reader.number())
    return None


def _values(reader: _Reader, kind: int) -> Iterator[bytes]:
    """Yield the values of a property; an unknown type ends the list."""
    size = _SIZES.get(kind & ~_SEVERAL)
    is_long = kind & ~_SEVERAL in (_OBJECT, _NARROW, _WIDE, _BINARY)
    for count in range(reader.number() if is_long or kind & _SEVERAL else 1):
        if reader.is_at_end or count >= _MOST_VALUES:
            return
        if is_long:
            yield reader.take(reader.number())
        elif size:
            yield reader.take(size)
        else:
            return


def _text(value: _Value | None, encoding: str) -> str:
    if value is None or value.kind not in (_NARROW, _WIDE):
        return ""
    if value.kind == _WIDE:
        return value.data.decode("utf-16-le", "replace").split("\0", 1)[0]
    narrow = value.data.split(b"\0", 1)[0]
    try:
        return decode(narrow, encoding) if narrow else ""
    except Unreadable:
        return narrow.decode("latin-1")


def _mail(item: _Item) -> Mail:
    text, encoding = partial(item.properties.text, item.encoding), item.encoding
    recipients = ((recipient.number(outlook.ROLE), partial(recipient.text, encoding)) for recipient in item.recipients)
    headers = outlook.headers(text, recipients, _sent(item))
    headers["From"] = headers["From"] or _sender(item)
    headers["Subject"] = (text(*_TITLES) or item.text(_SUBJECT)).lstrip("\1 ")
    body = outlook.body(text, item.properties.binary, item.text(_BODY))
    mail = Mail(headers, [part for part in (_appointment(item), body, _members(item)) if part])
    mail.omitted["parts"] += body is None
    for file in item.files:
        _attach(file, encoding, mail)
    mail.omitted["files"] += item.more_files
    return mail


def _sender(item: _Item) -> str:
    """Return the sender of a message from a field with four two-byte numbers, a name and an address."""
    data = item.fields.get(_FROM, b"")
    name_size, address_size = (int.from_bytes(data[at : at + 2], "little") for at in (4, 6))
    name, address = data[8 : 8 + name_size], data[8 + name_size : 8 + name_size + address_size]
    texts = [_text(_Value(_NARROW, text), item.encoding) for text in (name, address)]
    return outlook.person(texts[0], texts[1].partition(":")[2] or texts[1])


def _sent(item: _Item) -> str:
    moments = (
        outlook.moment_text(item.properties.binary(property_id)) for property_id in (outlook.SENT, outlook.DELIVERED)
    )
    return next(filter(None, moments), "") or _date(item.fields.get(_DATE_SENT, b""))


def _date(data: bytes) -> str:
    """Return a date that is stored as its numbers."""
    if len(data) < 12:
        return ""
    year, month, day, hour, minute, second = struct.unpack_from("<6H", data)
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}" if 1 <= month <= 12 else ""


def _appointment(item: _Item) -> Body:
    named = item.properties.named
    starts, ends = (
        outlook.moment_text(named[number].data) if number in named else _date(item.fields.get(other, b""))
        for number, other in ((_STARTS, _START), (_ENDS, _END))
    )
    when, where = " to ".join(filter(None, (starts, ends))), one_line(_text(named.get(_WHERE), item.encoding))
    lines = (f"{name}: {said}" for name, said in (("When", when), ("Where", where)) if said)
    return Body("plain", "\n".join(lines))


def _members(item: _Item) -> Body:
    """Return the people on an Outlook distribution list, each stored as a name, an address type and an address."""
    value = item.properties.named.get(_MEMBERS)
    lines = []
    for member in (value.data, *value.others) if value else ():
        if len(member) >= _MEMBER.size:
            is_wide = _MEMBER.unpack_from(member)[3] & _NAMED
            words = member[_MEMBER.size :].decode("utf-16-le" if is_wide else "latin-1", "replace").split("\0")
            lines.append(outlook.person(words[0], words[2] if len(words) > 2 else ""))
    return Body("plain", "\n".join(lines))


def _attach(file: _File, encoding: str, mail: Mail) -> None:
    properties = file.properties
    title = _text(_Value(_NARROW, file.name), encoding)
    names = (outlook.LONG_NAME, outlook.SHORT_NAME)
    name = properties.text(encoding, *names) or title or properties.text(encoding, outlook.NAME)
    inner = properties.binary(outlook.DATA)
    if inner.startswith(_MESSAGE):
        mail.attachments.append(Attachment(f"{name[:_LONGEST_NAME] or 'message'}.tnef", inner[len(_MESSAGE) :]))
        return
    if properties.number(outlook.METHOD) == outlook.AS_OBJECT:
        mail.textless.append(name or "object")
        mail.omitted["objects"] += 1
        return
    content_id, media_type = (
        properties.text(encoding, property_id) for property_id in (outlook.CONTENT_ID, outlook.MEDIA_TYPE)
    )
    outlook.attach(Attachment(name or "attachment", file.data or inner), content_id, media_type, mail)
