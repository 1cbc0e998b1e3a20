"""The limits that several parts share. `limit_errors.py` has the texts of their errors."""

from typing import Final

DEFAULT_TOP: Final = 10
MAX_TOP: Final = 100
"""The most results of a search, unless KB_MAX_TOP says otherwise."""

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 500
MAX_ID: Final = 2**63 - 1
"""The highest number that a database holds."""

ID_DIGITS: Final = 18
"""Every number with this many digits fits in 64 bits."""

MAX_TAGS: Final = 100
"""The maximum number of tags of a document, and of a list in a request."""

MAX_TAG_CHARS: Final = 200
MAX_TITLE: Final = 500
MAX_PATH: Final = 4096
MAX_NAME: Final = 1000
"""The maximum length of a name or a heading to look for."""

MAX_LABEL: Final = 255
"""The maximum length of the name of a file or a machine, as in most file systems."""

MAX_UPLOAD_MB: Final = 512
MAX_REASONS: Final = 20
"""The maximum number of failed files, and of reasons for kept documents, in a report of a sync."""
