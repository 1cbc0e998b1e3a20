"""The container of Outlook messages and of Office 97-2003 documents (OLE, MS-CFB)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from kb.api.errors import Unreadable

if TYPE_CHECKING:
    from olefile import OleFileIO

OLE_SIGNATURE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_ole(data: bytes) -> OleFileIO:
    """Open a container.

    Raises:
        Unreadable: it is damaged.
    """
    from olefile import OleFileIO

    try:
        return OleFileIO(io.BytesIO(data))
    except (OSError, ValueError, IndexError, RecursionError) as error:
        raise Unreadable(
            "the file is damaged or cut short: it begins like an Outlook message or an Office 97-2003 document"
            " but is not a whole one"
        ) from error
