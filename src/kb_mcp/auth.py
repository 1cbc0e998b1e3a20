"""The agents' key (requirement G-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastmcp.server.auth import AccessToken, TokenVerifier

if TYPE_CHECKING:
    from kb.asgi.bearer import Key


class KeyVerifier(TokenVerifier):
    """Knows one key."""

    def __init__(self, key: Key) -> None:
        super().__init__()
        self._key = key

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who sent the token; None if it is not the key."""
        if not self._key.matches(token):
            return None
        return AccessToken(token=token, client_id="agent", scopes=[])
