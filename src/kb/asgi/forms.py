"""What holds for every form that is sent, to the API or to a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kb.api.errors import Invalid

if TYPE_CHECKING:
    from starlette.datastructures import Headers

MAX_FIELD: Final = 64 << 10
"""The most bytes of a field, which is held in memory; pages take more where it holds a note."""

UTF_8: Final = re.compile(r""";\s*charset\s*=\s*"?utf-?8"?\s*(;|\Z)""")


def check_charset(headers: Headers) -> None:
    """Refuse a form that names another encoding than UTF-8: Python has some that take very long to decode.

    Raises:
        Invalid: it does.
    """
    declared = headers.get("content-type", "").lower()
    if (named := declared.count("charset")) and (named > 1 or not UTF_8.search(declared)):
        raise Invalid("form: send it in UTF-8.")
