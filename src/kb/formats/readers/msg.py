"""Outlook messages (.msg): an OLE file with a stream for each property of the message (MS-OXMSG)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from email import message_from_string
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable
from kb.formats.containers.ole import open_ole
from kb.formats.detect import is_envelope
from kb.formats.readers import outlook
from kb.formats.readers.eml import POLICY, says_encrypted
from kb.formats.readers.mail import ENCRYPTED, Mail, message_ids_in, render
from kb.formats.text.encoding import decode
from kb.formats.text.extracted import Attachment, Extracted

if TYPE_CHECKING:
    import olefile

    _Tree = defaultdict[tuple[str, ...], set[str]]

_DAMAGED: Final = "the Outlook message is damaged"
_ATTACHED: Final = "__attach_version1.0_"
_PROPERTIES: Final = "__properties_version1.0"
_PROTECTED: Final = "the message is protected by rights management: only people whom its sender allowed can read it"


def read(data: bytes) -> Extracted:
    try:
        with open_ole(data) as ole:
            message = _Storage(ole, (), _children(ole))
            if says_encrypted(message_from_string(message.text(outlook.HEADERS), policy=POLICY)):
                raise Unreadable(ENCRYPTED)
            for attached in message.within(_ATTACHED):
                if is_envelope(attached.binary(outlook.DATA)) and not outlook.body(message.text, message.binary):
                    raise Unreadable(ENCRYPTED)
                if _name(attached).lower() == "message.rpmsg":
                    raise Unreadable(_PROTECTED)
            return render(_mail(message))
    except (OSError, RecursionError) as error:
        raise Unreadable(_DAMAGED) from error


def _children(ole: olefile.OleFileIO) -> _Tree:
    tree: _Tree = defaultdict(set)
    for *folder, name in ole.listdir(storages=True):
        tree[tuple(folder)].add(name)
    return tree


class _Storage:
    """A folder of the file: the message, a recipient or an attachment, with its properties."""

    def __init__(self, ole: olefile.OleFileIO, path: tuple[str, ...], tree: _Tree) -> None:
        self._ole = ole
        self._path = path
        self._tree = tree
        self._children = tree[path]
        stream = self._stream(_PROPERTIES) or b""
        header = _header_size(self._path)
        entries = (stream[at : at + 16] for at in range(header, len(stream) - 15, 16))
        self._fixed = {int.from_bytes(entry[2:4], "little"): entry[8:] for entry in entries}

    def within(self, beginning: str) -> Iterator[_Storage]:
        """Yield the storages whose names have this prefix, in order."""
        for name in sorted(self._children):
            if name.startswith(beginning):
                yield _Storage(self._ole, (*self._path, name), self._tree)

    def text(self, *properties: int) -> str:
        """Return the first of the properties that is not empty."""
        return next(filter(None, map(self._text, properties)), "")

    def binary(self, number: int) -> bytes:
        return self._stream(f"__substg1.0_{number:04X}0102") or b""

    def time(self, *properties: int) -> str:
        """Return the first of the times that is set, in UTC."""
        return next(filter(None, (outlook.moment_text(self._fixed.get(number, b"")) for number in properties)), "")

    def number(self, number: int) -> int:
        return int.from_bytes(self._fixed.get(number, b"")[:4], "little")

    def _text(self, number: int) -> str:
        wide = self._stream(f"__substg1.0_{number:04X}001F")
        if wide is not None:
            return wide.decode("utf-16-le", "replace").strip("\0")
        narrow = self._stream(f"__substg1.0_{number:04X}001E")
        try:
            return decode(narrow.strip(b"\0"), f"cp{self._code_page()}") if narrow else ""
        except Unreadable:
            return ""

    def _code_page(self) -> int:
        top = _Storage(self._ole, (), self._tree) if self._path else self
        return next(filter(None, map(top.number, outlook.CODE_PAGES)), 1252)

    def _stream(self, name: str) -> bytes | None:
        if name not in self._children:
            return None
        data: bytes = self._ole.openstream([*self._path, name]).read()
        return data


def _header_size(path: tuple[str, ...]) -> int:
    """Return the size of the header before the properties of a message, of an inner message, or of anything else."""
    if not path:
        return 32
    return 24 if path[-1].startswith("__substg1.0_3701") else 8


def _mail(message: _Storage) -> Mail:
    sent = message_from_string(message.text(outlook.HEADERS), policy=POLICY)
    recipients = (
        (recipient.number(outlook.ROLE), recipient.text) for recipient in message.within("__recip_version1.0_")
    )
    date = str(sent.get("Date") or message.time(outlook.SENT, outlook.DELIVERED))
    body = outlook.body(message.text, message.binary)
    mail = Mail(outlook.headers(message.text, recipients, date), [body] if body else [])
    mail.omitted["parts"] += body is None
    mail.message_ids = message_ids_in(sent)
    for attached in message.within(_ATTACHED):
        _attach(attached, mail)
    return mail


def _attach(attached: _Storage, mail: Mail) -> None:
    """Add a file, a message, or an object of another program from a message."""
    name = _name(attached)
    if attached.number(outlook.METHOD) == outlook.AS_OBJECT:
        mail.textless.append(name or "object")
        mail.omitted["objects"] += 1
        return
    for inner in attached.within(f"__substg1.0_{outlook.DATA:04X}000D"):
        message = _mail(inner)
        mail.omitted += message.omitted
        mail.attachments.append(outlook.as_file(message))
        return
    file = Attachment(name or "attachment", attached.binary(outlook.DATA))
    outlook.attach(file, attached.text(outlook.CONTENT_ID), attached.text(outlook.MEDIA_TYPE), mail)


def _name(attached: _Storage) -> str:
    return attached.text(outlook.LONG_NAME, outlook.SHORT_NAME, outlook.NAME)
