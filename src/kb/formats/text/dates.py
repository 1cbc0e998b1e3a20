"""Dates that files give themselves, in the one form in which they can be compared."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

from kb.formats.text.encoding import one_line

_TIME: Final = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_ISO: Final = re.compile(rf"[12]\d{{3}}(?:[-/]\d\d?(?:[-/]\d\d?(?:{_TIME})?)?)?")
_LONGEST: Final = 80


def iso_date(text: str) -> str | None:
    """Return a date that begins with its year as it is, one as mail writes it in ISO 8601, no other."""
    date = one_line(text)
    if len(date) > _LONGEST:
        return None
    if _ISO.fullmatch(date):
        return date
    try:
        return parsedate_to_datetime(date).isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
