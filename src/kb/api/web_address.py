"""The identity of a web page: its address without tracking parameters and other parts that do not identify it."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

_TRACKING: Final = re.compile(
    r"utm_\w+|(?:fb|g|dc|ms|y|tw|tt)clid|li_fat_id|gclsrc|[gw]braid|gad_\w+|igshid|igsh|mc_[ce]id|mkt_tok|_g[al]|_hs\w+"
    r"|hsctatracking|srsltid|oly_(?:enc|anon)_id|vero_\w+|wt_z?mc|(?:pk|piwik|mtm|matomo)_\w+|ref_src|ref_url|s_cid|spm|_openstat",
    re.IGNORECASE,
)
"""Parameters that mails, advertisements and social networks add to count visitors."""

_BESIDE: Final = re.compile(r"\A(?:www|m|mobile|amp)\.")
_PORTS: Final = {"http": ":80", "https": ":443"}
_ROUTE: Final = ("/", "!")
"""The beginnings of fragments by which scripts distinguish pages."""


def is_page(path: str) -> bool:
    """Return whether a path is the address of a web page."""
    return path.lower().startswith(("http://", "https://"))


def page_address(address: str) -> str:
    """Return the address of a page without tracking parameters, fragment and usual port; other paths unchanged."""
    if not is_page(address):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    account, at, host = parts.netloc.rpartition("@")
    query = "&".join(part for part in parts.query.split("&") if not _TRACKING.fullmatch(part.partition("=")[0]))
    fragment = parts.fragment if parts.fragment.startswith(_ROUTE) else ""
    place = account + at + host.lower().removesuffix(_PORTS[parts.scheme])
    return urlunsplit((parts.scheme, place, parts.path, query, fragment))


def is_spelling_of(address: str, other: str) -> bool:
    """Return whether two addresses differ only in http and https, in `www.`, or in a slash at the end."""
    one, two = (urlsplit(page_address(each)) for each in (address, other))
    return (_host(one), one.path.rstrip("/"), one.query) == (_host(two), two.path.rstrip("/"), two.query)


def is_same_page(address: str, canonical: str) -> bool:
    """Return whether a page may say that this is its address.

    Many sites name their front page, or the same page for all ids.
    """
    own, other = urlsplit(page_address(address)), urlsplit(page_address(canonical))
    has_same_ids = own.query in ("", other.query)
    is_front = not other.path.strip("/") and bool(own.path.strip("/"))
    return other.scheme in _PORTS and _host(own) == _host(other) and has_same_ids and not is_front


def _host(parts: SplitResult) -> str:
    return _BESIDE.sub("", parts.netloc, count=1)
