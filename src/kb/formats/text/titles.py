"""Whether the title a program wrote into a file says anything about it."""

from __future__ import annotations

import re

from kb.formats.text.encoding import clean, one_line

_WRITTEN_BY = re.compile(r"(?i)^microsoft (?:word|powerpoint|excel|publisher|visio) - ")
_PLACEHOLDER = re.compile(
    r"(?i)^\W*(?:untitled|anonymous|unspecified|unknown|none|null|title|(?:document|presentation|slide|book)\s*\d+)"
    r"[\W\d]*$"
)
_FILE_NAME = re.compile(
    r"(?i)\.(?:docx?|docm|dotx?|pptx?|xlsx?|pdf|tex|dvi|ps|eps|odt|ods|odp|rtf|txt|md|html?|indd|qxd|p65|fm|pages|key|"
    r"numbers|pub|vsdx?|ai|cdr|tiff?|jpe?g|png)$"
)
_FILE_STEM = re.compile(r"^(?=.*[_\d])[!-~]+$")


def sensible_title(title: str | None) -> str | None:
    """`title` on one line, or None when it is a placeholder or the name of a file."""
    found = _WRITTEN_BY.sub("", one_line(clean(title or "")))
    if not found or any(rule.search(found) for rule in (_PLACEHOLDER, _FILE_NAME, _FILE_STEM)):
        return None
    return found
