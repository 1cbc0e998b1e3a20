"""Electronic mail as it is sent (.eml): headers, body, attached files."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.policy import compat32
from email.utils import collapse_rfc2231_value
from mimetypes import guess_extension
from typing import TYPE_CHECKING, Any, Final

from kb.api.errors import Unreadable
from kb.formats.containers.mbox import without_separator
from kb.formats.detect import is_envelope
from kb.formats.extracted import Attachment
from kb.formats.readers.html import flat_text
from kb.formats.readers.mail import ENCRYPTED, HEADERS, Body, Mail, render
from kb.formats.text.encoding import as_utf8, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.formats.extracted import Extracted

_BODIES: Final = {
    *("text/plain", "text/html", "text/enriched", "text/markdown", "text/rfc822-headers"),
    *("message/delivery-status", "message/disposition-notification", "message/feedback-report"),
}
_SMIME: Final = {"application/pkcs7-mime", "application/x-pkcs7-mime"}
_ENCRYPTED_TYPES: Final = {
    *("multipart/encrypted", "application/pgp-encrypted", "application/x-microsoft-rpmsg-message"),
}
_SIGNATURES: Final = {"pgp-signature", "pgp-keys", "pkcs7-signature", "x-pkcs7-signature"}
_WIDE: Final = re.compile(r"(?i)utf-?(?:16|32)[-_]?(?:le|be)?")


class _Message(Message):
    """A message whose parameters may name any character set: Python raises on some that are none, or none of text."""

    def get_param(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the library's
        value = super().get_param(*arguments, **options)
        if not isinstance(value, tuple):
            return value
        try:
            return collapse_rfc2231_value(value)
        except ValueError:
            return value[2]


POLICY: Final = compat32.clone(message_factory=_Message)
"""How the headers of mail are read. The policy that knows modern headers raises on many that real mail has."""


def read(data: bytes) -> Extracted:
    """Read a message.

    Raises:
        Unreadable: the message is encrypted.
    """
    message = message_from_bytes(without_separator(as_utf8(data).lstrip(b"\xef\xbb\xbf\r\n")), policy=POLICY)
    if _is_encrypted(message):
        raise Unreadable(ENCRYPTED)
    mail = Mail({name: header_text(message, name) for name in HEADERS})
    _collect(message, mail)
    return render(mail)


def bodies(data: bytes) -> list[Body]:
    """Return what a message says, without its headers and the files in it, such as a page that a browser saved."""
    mail = Mail({})
    _collect(message_from_bytes(as_utf8(data).lstrip(b"\xef\xbb\xbf\r\n"), policy=POLICY), mail)
    return [body for body in mail.bodies if body]


def header_text(message: Message, name: str) -> str:
    """Return what the headers of this name say."""
    values = (value for key, value in message.raw_items() if key.lower() == name.lower())
    # Bytes beyond ASCII, which many a header has, stand in it as surrogates.
    return ", ".join(_decoded(_text(str(value).encode("utf-8", "surrogateescape"), None)) for value in values)


def says_encrypted(message: Message) -> bool:
    """Return whether the headers of a message say that it is encrypted."""
    kind = message.get_content_type()
    return kind in _ENCRYPTED_TYPES or (kind in _SMIME and "enveloped" in str(message.get_param("smime-type")).lower())


def _is_encrypted(message: Message) -> bool:
    is_enclosed = message.get_content_type() in _SMIME and is_envelope(_payload(message))
    kinds = {part.get_content_type() for part in _parts(message)}
    return says_encrypted(message) or is_enclosed or bool(kinds & _ENCRYPTED_TYPES)


def _decoded(header: str) -> str:
    """Return a header's words, which may be encoded in one or several character sets."""
    try:
        parts = decode_header(header)
    except ValueError:
        return header
    return "".join(_text(part, charset) if isinstance(part, bytes) else part for part, charset in parts)


def _text(data: bytes, charset: str | None) -> str:
    try:
        if charset and _WIDE.fullmatch(charset) and not data.isascii():
            return data.decode(charset)
        return decode(data, charset) if data else ""
    except (Unreadable, ValueError):
        return data.decode("latin-1")


def _collect(part: Message, mail: Mail) -> None:
    """Put what `part` holds in its place: the body or the attachments."""
    kind = part.get_content_type()
    if kind == "multipart/alternative" and part.is_multipart():
        _collect_best(part, mail)
    elif part.get_content_maintype() == "multipart" and part.is_multipart():
        for each in _parts(part):
            _collect(each, mail)
    elif (kind in _BODIES or part.get_content_maintype() == "multipart") and not _is_attached(part):
        mail.bodies.append(_body(part))
    elif not _is_in_the_text(part):
        _attach(part, mail)


def _attach(part: Message, mail: Mail) -> None:
    is_reply = part.get_content_type() == "text/calendar" and str(part.get_param("method")).upper() == "REPLY"
    if is_reply or part.get_content_subtype() in _SIGNATURES:
        mail.textless.append(_filename(part))
    else:
        mail.attach(Attachment(_filename(part), _content(part)), part.get_content_type())


def _collect_best(alternatives: Message, mail: Mail) -> None:
    """Take the richest of the versions of one text, and what is attached to any of them."""
    versions = []
    for part in _parts(alternatives):
        versions.append(version := Mail({}))
        _collect(part, version)
        mail.attachments += version.attachments
        mail.textless += version.textless
        mail.pictures += version.pictures
    # The last one is what the sender meant, if it shows anything at all.
    shown = [version.bodies for version in versions if any(map(_has_text, version.bodies))]
    mail.bodies += shown[-1] if shown else []


def _has_text(body: Body) -> bool:
    return bool(flat_text(body.text) if body.kind == "html" else body)


def _parts(message: Message) -> Iterator[Message]:
    parts = message.get_payload()
    return (part for part in parts if isinstance(part, Message)) if isinstance(parts, list) else iter(())


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _is_in_the_text(part: Message) -> bool:
    """Return whether a part is a picture that the body shows."""
    return part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment"


def _body(part: Message) -> Body:
    text = _text(_content(part), part.get_content_charset())
    return Body("html" if part.get_content_subtype() == "html" else "plain", text)


def _content(part: Message) -> bytes:
    """Return the bytes of a part; of an attached message, the message as it is."""
    if part.get_content_maintype() == "message":
        return b"".join(inner.as_bytes() for inner in _parts(part)) or _payload(part)
    return _payload(part)


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _filename(part: Message) -> str:
    if name := part.get_filename():
        return _decoded(name)
    subjects = [header_text(inner, "Subject") for inner in _parts(part)]
    if part.get_content_maintype() == "message":
        return f"{next(filter(None, subjects), 'message')}.eml"
    return f"attachment{guess_extension(part.get_content_type()) or ''}"
