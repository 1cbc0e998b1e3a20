"""Electronic mail as sent (.eml): headers, body, attached files."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import a2b_uu
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import compat32
from email.utils import collapse_rfc2231_value
from mimetypes import guess_extension
from quopri import decodestring
from typing import Any, Final

from kb.api.errors import Unreadable
from kb.formats.containers.cms import signed_content
from kb.formats.containers.mailbox import message_in, without_separator
from kb.formats.detect import TNEF_SIGNATURE, is_envelope
from kb.formats.readers import tnef
from kb.formats.readers.mail import ENCRYPTED, HEADERS, Body, Mail, MailBody, message_ids_in, render
from kb.formats.text.encoding import as_utf8, decode
from kb.formats.text.extracted import Attachment, Extracted

_BODIES: Final = {
    *("text/plain", "text/html", "text/enriched", "text/markdown", "text/rfc822-headers"),
    *("message/delivery-status", "message/disposition-notification", "message/feedback-report"),
}
_VERSIONS: Final = _BODIES | {"text/calendar"}
_TAKEN_OUT: Final = ("X-Mozilla-Altered", "X-Mozilla-External-Attachment-URL")
_SMIME: Final = {"application/pkcs7-mime", "application/x-pkcs7-mime"}
_ENCRYPTED_TYPES: Final = {
    *("multipart/encrypted", "application/pgp-encrypted", "application/x-microsoft-rpmsg-message"),
}
_PACKED: Final = {"application/ms-tnef", "application/vnd.ms-tnef"}
_PACKED_NAME: Final = "winmail.dat"
_MESSAGES: Final = {"message/rfc822", "message/global"}
_KEPT_APART: Final = "X-Apple-Content-Length"
"""The header of a file that Apple Mail stores elsewhere, or has not downloaded."""

_HEADER: Final = re.compile(rb"\s*(?:>?From [^\n]*\n)?[!-9;-~]+:")
_NOT_QUOTED: Final = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n)")
_UUENCODED: Final = re.compile(
    r"(?m)^begin [0-7]{3,4} (?P<name>[^\n]{1,200})\n(?P<lines>(?:[!-`][ -`]{0,84}\n)++)(?:`?\n)?end[ ]?$\n?"
)
_SIGNATURE_MARK: Final = "-- "
_SIGNATURES: Final = {"pgp-signature", "pgp-keys", "pkcs7-signature", "x-pkcs7-signature"}
_MESSAGE_SUFFIXES: Final = (".eml", ".emlx", ".msg", ".mht", ".mhtml")
_WIDE: Final = re.compile(r"(?i)utf-?(?:16|32)[-_]?(?:le|be)?")


class _Message(Message):
    """A message whose parameters may name any character set: Python fails on unknown ones and on binary codecs."""

    def get_param(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the library's
        value = super().get_param(*arguments, **options)
        if not isinstance(value, tuple):
            return value
        try:
            return collapse_rfc2231_value(value)
        except ValueError:
            return value[2]


POLICY: Final = compat32.clone(message_factory=_Message)
"""The policy for the headers of mail. The modern one raises errors on many real headers."""


def read(data: bytes) -> Extracted:
    source = message_in(as_utf8(data)).lstrip(b"\xef\xbb\xbf\r\n")
    message = message_from_bytes(without_separator(source), policy=POLICY)
    if _is_encrypted(message):
        raise Unreadable(ENCRYPTED)
    mail = Mail({name: header_text(message, name) for name in HEADERS})
    mail.message_ids = message_ids_in(message)
    _collect(message, mail)
    return render(mail)


def bodies(data: bytes) -> list[Body]:
    """Return the bodies of a message, such as a page that a browser saved, without its headers and files."""
    mail = Mail({})
    _collect(message_from_bytes(as_utf8(data).lstrip(b"\xef\xbb\xbf\r\n"), policy=POLICY), mail)
    return [body for body in mail.bodies if body]


def header_text(message: Message, name: str) -> str:
    values = (value for key, value in message.raw_items() if key.lower() == name.lower())
    # Bytes beyond ASCII, which many headers contain, appear as surrogates.
    return ", ".join(_decoded(_text(str(value).encode("utf-8", "surrogateescape"), None)) for value in values)


def says_encrypted(message: Message) -> bool:
    kind = message.get_content_type()
    return kind in _ENCRYPTED_TYPES or (kind in _SMIME and "enveloped" in str(message.get_param("smime-type")).lower())


def _is_encrypted(message: Message) -> bool:
    is_enclosed = message.get_content_type() in _SMIME and is_envelope(_payload(message))
    kinds = {part.get_content_type() for part in _parts(message)}
    return says_encrypted(message) or is_enclosed or bool(kinds & _ENCRYPTED_TYPES)


def _decoded(header: str) -> str:
    """Return a header's decoded words, which may use several character sets."""
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
    kind = part.get_content_type()
    if kind in _SMIME and (signed := signed_content(_payload(part))):
        _collect(message_from_bytes(signed, policy=POLICY), mail)
    elif kind == "multipart/alternative" and part.is_multipart():
        _collect_best(part, mail)
    elif part.get_content_maintype() == "multipart" and part.is_multipart():
        for inner in _parts(part):
            _collect(inner, mail)
    elif kind in _PACKED or part_filename(part).lower() == _PACKED_NAME:
        _unpack(part, mail)
    elif (kind in _BODIES or part.get_content_maintype() == "multipart") and not _is_attached(part):
        body = _body(part)
        mail.bodies.append(body if body.kind == "html" else _without_uuencoded(body.text, mail))
    elif part.get_content_maintype() == "image" and part.get_content_disposition() != "attachment":
        shown_as = str(part.get("Content-ID") or part.get("Content-Location") or "")
        mail.shown.append(MailBody(shown_as, Attachment(part_filename(part), part_content(part)), kind))
    else:
        _attach(part, mail)


def _unpack(part: Message, mail: Mail) -> None:
    """Add the files that Outlook packed into one; a file that cannot be unpacked is named and counted."""
    data = _payload(part)
    try:
        packed = tnef.unpack(data) if data.startswith(TNEF_SIGNATURE) else Mail({})
    except Unreadable:
        packed = Mail({})
    if not (packed.bodies or packed.attachments or packed.textless):
        mail.textless.append(part_filename(part))
        mail.omitted["files"] += 1
    mail.take_files(packed)
    mail.packed += packed.bodies


def _attach(part: Message, mail: Mail) -> None:
    if part.get_content_type() == "message/external-body" or any(map(part.get, _TAKEN_OUT)):  # only a remark is left
        mail.textless.append(part_filename(part))
        mail.omitted["files"] += 1
        return
    is_reply = part.get_content_type() == "text/calendar" and str(part.get_param("method")).upper() == "REPLY"
    if is_reply or part.get_content_subtype() in _SIGNATURES:
        mail.textless.append(part_filename(part))
    else:
        mail.attach(Attachment(part_filename(part), data := part_content(part)), part.get_content_type())
        mail.omitted["files"] += int(not data and part.get(_KEPT_APART) is not None)


def _collect_best(alternatives: Message, mail: Mail) -> None:
    """Add the richest version of one text, and the attachments of all versions."""
    versions = []
    for part in _parts(alternatives):
        if (
            part.get_content_maintype() == "text"
            and part.get_content_type() not in _VERSIONS
            and not _is_attached(part)
        ):
            continue  # a version for a particular program or device, such as a watch
        versions.append(version := Mail({}))
        _collect(part, version)
        mail.take_files(version)
    # The sender prefers the last one, if it shows anything.
    shown = [version.bodies for version in versions if any(body.words.strip() for body in version.bodies)]
    mail.bodies += shown[-1] if shown else []


def _parts(message: Message) -> Iterator[Message]:
    parts = message.get_payload()
    return (part for part in parts if isinstance(part, Message)) if isinstance(parts, list) else iter(())


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _without_uuencoded(text: str, mail: Mail) -> Body:
    """Extract the files that older programs wrote into the text, and leave their names."""

    def take(match: re.Match[str]) -> str:
        try:
            data = b"".join(map(a2b_uu, match["lines"].splitlines()))
        except ValueError:
            return match[0]
        mail.attach(Attachment(match["name"].strip(), data))
        return f"[{match['name'].strip()}]\n"

    return Body("plain", _UUENCODED.sub(take, text.replace("\r\n", "\n")))


def part_text(part: Message) -> str:
    return _text(part_content(part), part.get_content_charset())


def _body(part: Message) -> Body:
    if part.get_content_subtype() == "html":
        return Body("html", part_text(part))
    text = part_text(part)
    if str(part.get_param("format")).lower() == "flowed":
        text = _unflowed(text, is_cut=str(part.get_param("delsp")).lower() == "yes")
    return Body("plain", text)


def _unflowed(text: str, *, is_cut: bool) -> str:
    """Return a text without soft line breaks, which follow a space at the end of a line (RFC 3676)."""
    lines, depth_before = list[str](), -1
    for line in text.replace("\r\n", "\n").split("\n"):
        words = line.lstrip(">")
        depth, words = len(line) - len(words), words.removeprefix(" ")
        if depth == depth_before and words != _SIGNATURE_MARK:
            lines[-1] = (lines[-1][:-1] if is_cut else lines[-1]) + words
        else:
            lines.append(f"{'>' * depth} {words}" if depth else words)
        depth_before = depth if words.endswith(" ") and words != _SIGNATURE_MARK else -1
    return "\n".join(lines)


def part_content(part: Message) -> bytes:
    """Return the bytes of a part; for an attached message, the message itself, decoded if necessary."""
    if part.get_content_maintype() != "message":
        return _payload(part)
    message = b"".join(inner.as_bytes() for inner in _parts(part)) or _payload(part)
    # A message must not be encoded, and Python's parser expects that; but some programs encode it.
    for decoded in (part.get("Content-Transfer-Encoding"), "base64"):
        inner = _decoded_message(message, str(decoded or "").strip().lower())
        if inner and (decoded is not None or not _HEADER.match(message)):
            return inner
    return message


def _decoded_message(message: bytes, encoding: str) -> bytes:
    """Return the message decoded from this encoding; empty if the result is not a message."""
    decoded = b""
    if encoding == "base64":
        with suppress(ValueError):
            decoded = b64decode(message)
    elif encoding == "quoted-printable" and not _NOT_QUOTED.search(message):
        decoded = decodestring(message.lstrip())
    return decoded if _HEADER.match(decoded) else b""


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def part_filename(part: Message) -> str:
    """Return the name of a part, or a name made from its subject or type."""
    name = _decoded(part.get_filename() or "")
    if part.get_content_type() in _MESSAGES and not name.lower().endswith(_MESSAGE_SUFFIXES):
        inner = BytesHeaderParser(policy=POLICY).parsebytes(part_content(part))
        return f"{name or header_text(inner, 'Subject') or 'message'}.eml"
    if name:
        return name
    return f"attachment{guess_extension(part.get_content_type()) or ''}"
