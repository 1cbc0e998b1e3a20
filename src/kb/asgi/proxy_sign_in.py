"""Sign-in by a proxy that knows who a person is, and names the key of this person in a header."""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

from starlette.types import Scope

from kb.api.errors import SettingError
from kb.settings import listed

PEER: Final = "kb.peer"
"""The key in a request's scope of the address that sent it, whatever X-Forwarded-For says."""

PROXIES: Final = "FORWARDED_ALLOW_IPS"
NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
OF_CLIENTS: Final = ("authorization", "cookie", "host", "origin", "referer", "user-agent")
"""Headers that browsers send themselves."""

NOBODY: Final = ""
"""The name of no key."""


class ProxySignIn:
    """The people that a proxy names.

    Args:
        header: the name of the header, KB_TRUSTED_HEADER.
        proxies: the addresses or networks of proxies, separated by commas, from FORWARDED_ALLOW_IPS.

    Raises:
        SettingError: others than the proxy could name somebody.
    """

    def __init__(self, header: str, proxies: str) -> None:
        if not HEADER.fullmatch(header) or header.lower() in OF_CLIENTS:
            raise SettingError(f"KB_TRUSTED_HEADER: {header!r} is not a suitable header name, such as Remote-User.")
        self._header = header.lower().encode()
        self._proxies = _networks(proxies)

    def name_in(self, scope: Scope) -> str | None:
        """Return the name of the key; None if the request is not from the proxy, or the proxy names nobody.

        A header that comes twice or is no name means nobody, because the proxy did not write it alone.
        """
        peer = scope.get(PEER)
        if not peer or not self._is_proxy(peer[0]):
            return None
        values = [value for name, value in scope["headers"] if name == self._header]
        if not values:
            return None
        name = values[0].decode("latin-1")
        return name if len(values) == 1 and NAME.fullmatch(name) else NOBODY

    def _is_proxy(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._proxies)


class ByProxy(NamedTuple):
    """The people that a proxy names, and the engine's key, with which kb acts on their behalf."""

    sign_in: ProxySignIn
    key: Callable[[], str]


def _networks(proxies: str) -> Sequence[IPv4Network | IPv6Network]:
    try:
        networks = [ip_network(each) for each in listed(proxies)]
    except ValueError as error:
        raise SettingError(f"{PROXIES}: {error}. KB_TRUSTED_HEADER needs addresses or networks here.") from None
    if not networks or not all(network.prefixlen for network in networks):
        raise SettingError(
            f"{PROXIES}: KB_TRUSTED_HEADER needs the addresses of your proxy here: whoever connects from there can"
            " sign in with any key."
        )
    return networks
