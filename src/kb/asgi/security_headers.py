"""The headers that restrict how browsers treat an answer."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Final

POLICY: Final = "Content-Security-Policy"
NO_SNIFFING: Final = ("X-Content-Type-Options", "nosniff")
ANSWER_HEADERS: Final = [
    NO_SNIFFING,
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
PAGE_HEADERS: Final = {  # in addition to ANSWER_HEADERS, which every answer has
    POLICY: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
FOREIGN_HEADERS: Final = {POLICY: "sandbox; default-src 'none'"}
"""For documents, which other people wrote: browsers run no scripts in them and load nothing."""

PDF_HEADERS: Final = {
    POLICY: "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
}
"""For PDFs, which Chrome's viewer shows on its own page, with a style and not in a sandbox. Scripts in a PDF run
in the viewer and reach nothing of kb; as its type is fixed, a file that only claims to be a PDF is no page."""

INLINE_SCRIPT: Final = re.compile(rb"<script(?:\s+type=\"[a-z/]+\")?>(.*?)</script>", re.DOTALL)


@cache
def with_own_scripts(page: bytes, forms: str = "'self'") -> dict[str, str]:
    """Return the policy of a page made by another program: it may run its own scripts, and load only from this server.

    Args:
        page: its HTML.
        forms: the allowed targets of its forms.
    """
    digests = (b64encode(sha256(script).digest()).decode() for script in INLINE_SCRIPT.findall(page))
    scripts = "".join(f" 'sha256-{digest}'" for digest in digests)
    return {
        POLICY: f"default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline';"
        f" img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action {forms};"
        " base-uri 'none'; frame-ancestors 'none'"
    }
