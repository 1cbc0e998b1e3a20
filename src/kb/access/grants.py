"""Grants of access to programs, which sign in over OAuth: codes, access tokens and refresh tokens.

A grant is valid as long as the key that a person entered for it would be. The store contains only SHA-256 digests.
"""

import logging
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Final

from kb import clock
from kb.access.keyring import FRESH_SECONDS, USED_SECONDS, Keyring, token_digest
from kb.api.errors import DiskFull, NotFound, StoreUnavailable
from kb.api.grant_models import Exchange, GrantRequest, GrantToken, Tokens
from kb.api.rights import KEY_PREFIX, OF_SETTINGS
from kb.asgi.key_check import access_changes
from kb.clock import shown
from kb.store.protocol import Store
from kb.store.rows import AuditEvent, Author, Grant, NamedKey, now_iso

logger = logging.getLogger(__name__)

CODE_SECONDS: Final = 60
ACCESS_SECONDS: Final = 3600
UNUSED_DAYS: Final = 90
"""A program that does not exchange its refresh token for so long must ask again."""

UNKNOWN: Final = "This code or token is not valid."


class Grants:
    """The grants of one store.

    Args:
        store: the whole store.
        keyring: the keys.
    """

    def __init__(self, store: Store, keyring: Keyring) -> None:
        self._store = store
        self._keyring = keyring
        self._fresh_seconds = FRESH_SECONDS if store.is_shared else float("inf")
        self._known: dict[str, Grant] = {}
        """Grants by the digest of their access token."""
        self._read_at: float | None = None
        self._changes = 0
        self._used: dict[str, str] = {}
        self._timer: threading.Timer | None = None

    def make(self, request: GrantRequest, author: Author) -> str:
        """Store a grant under a key; return its code.

        Raises:
            NotFound: the key is not valid.
            TooManyCalls: the key has used its requests of this minute.
        """
        key = self._keyring.identify(request.key_digest)
        if key is None and not OF_SETTINGS.fullmatch(request.key_name):
            raise NotFound("The key is not valid.")
        family = secrets.token_urlsafe(16)
        code = _next_token(family)
        grant = Grant(
            id=secrets.token_hex(8),
            family=token_digest(family),
            key_name=key.name if key else request.key_name,
            key_digest=request.key_digest,
            client_id=request.client_id,
            client_name=request.client_name,
            scopes=" ".join(request.scopes),
            resource=request.resource,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            created_at=now_iso(),
            next_digest=token_digest(code),
            until=_after(seconds=CODE_SECONDS),
        )
        with self._store.write(urgent=True) as tx:
            tx.grants.expire(_after())
            tx.grants.add(grant)
            tx.audit.add([AuditEvent("grant-make", key=grant.key_name)], author)
        self.forget()
        return code

    def find(self, token: GrantToken) -> Grant:
        """Return the grant of a code or refresh token that can be exchanged.

        A token that was exchanged before has been stolen, or its successor has: either way the grant ends.

        Raises:
            NotFound: the token is not valid.
        """
        family = token_digest(_family(token.token))
        grant = next((grant for grant in self._stored() if grant.family == family), None)
        if grant is None:
            raise NotFound(UNKNOWN)
        if grant.next_digest != token_digest(token.token) or grant.is_code != (token.kind == "code"):
            self._end_reused(grant)
        if grant.until <= _after() or not _has_key(grant, self._keyring.every()):
            raise NotFound(UNKNOWN)
        return grant

    def exchange(self, asked: Exchange) -> Tokens:
        """Return new tokens for a code or a refresh token, which is not valid any more.

        Raises:
            NotFound: the token is not valid.
        """
        grant = self.find(asked)
        scopes = [scope for scope in grant.scopes.split() if asked.scopes is None or scope in asked.scopes]
        access, refresh = KEY_PREFIX + secrets.token_urlsafe(32), _next_token(_family(asked.token))
        changed = replace(
            grant,
            next_digest=token_digest(refresh),
            until=_after(days=UNUSED_DAYS),
            access_digest=token_digest(access),
            access_scopes=" ".join(scopes),
            access_until=_after(seconds=ACCESS_SECONDS),
        )
        with self._store.write(urgent=True) as tx:
            is_ours = tx.grants.exchange(changed, grant.next_digest)
        self.forget()
        if not is_ours:
            self._end_reused(grant)
        return Tokens(access_token=access, refresh_token=refresh, expires_in=ACCESS_SECONDS, scopes=scopes)

    def identify(self, digest: str) -> tuple[Grant, NamedKey | None] | None:
        """Return the grant of the access token with this digest, with its key, and record the use.

        The key is None if it is one of the gateway's own. Return None if there is no valid token with this digest.

        Raises:
            TooManyCalls: the key has used its requests of this minute.
        """
        grant = self._by_access().get(digest)
        if grant is None or (grant.access_until or "") <= _after():
            return None
        key = self._keyring.identify(grant.key_digest)
        if key is None and not OF_SETTINGS.fullmatch(grant.key_name):
            return None
        self._use(grant)
        return grant, key

    def every(self) -> list[Grant]:
        """Return the grants that programs can use, the oldest first."""
        keys, now = self._keyring.every(), _after()
        return [
            replace(grant, used_at=self._used.get(grant.id, grant.used_at))
            for grant in self._stored()
            if not grant.is_code and grant.until > now and _has_key(grant, keys)
        ]

    def end(self, grant_id: str, author: Author) -> Grant:
        """End a grant: its tokens are not valid any more. Return it.

        Raises:
            NotFound: the grant does not exist.
        """
        grant = next((grant for grant in self._stored() if grant.id == grant_id), None)
        if grant is None:
            raise NotFound(f"Grant {grant_id} does not exist.")
        self._end([grant], author)
        return grant

    def forget(self) -> None:
        """Read the grants again: they have changed."""
        self._changes += 1
        self._read_at = None
        access_changes.count += 1

    def flush(self) -> None:
        """Write the times of the last uses."""
        timer, self._timer = self._timer, None
        if timer is None:
            return
        timer.cancel()
        used, self._used = self._used, {}
        with suppress(OSError, StoreUnavailable, DiskFull), self._store.write() as tx:  # requests still work
            for grant_id, at in used.items():
                tx.grants.used(grant_id, at)

    def _stored(self) -> list[Grant]:
        with self._store.read() as tx:
            return tx.grants.all()

    def _by_access(self) -> dict[str, Grant]:
        """Return the grants by their access tokens, at most slightly outdated if other engines change them."""
        now = monotonic()
        if self._read_at is None or now - self._read_at > self._fresh_seconds:
            changes = self._changes
            known = {grant.access_digest: grant for grant in self._stored() if grant.access_digest}
            if changes != self._changes:
                return known
            self._known, self._read_at = known, now
        return self._known

    def _end_reused(self, grant: Grant) -> None:
        logger.warning("a code or token of %r was used twice, so its access has ended", grant.client_name)
        self._end([grant], Author(grant.key_name, grant.client_name))
        raise NotFound(UNKNOWN)

    def _end(self, grants: Iterable[Grant], author: Author) -> None:
        with self._store.write(urgent=True) as tx:
            for grant in grants:
                tx.grants.remove(grant.id)
                tx.audit.add([AuditEvent("grant-end", key=grant.key_name)], author)
        self.forget()

    def _use(self, grant: Grant) -> None:
        self._used[grant.id] = now_iso()
        if self._timer is None:
            self._timer = threading.Timer(USED_SECONDS, self.flush)
            self._timer.daemon = True
            self._timer.start()


def _has_key(grant: Grant, keys: Iterable[NamedKey]) -> bool:
    """Whether the key that was entered for a grant is valid; only the gateway knows about its own."""
    return any(key.opens(grant.key_digest) for key in keys) or OF_SETTINGS.fullmatch(grant.key_name) is not None


def _family(token: str) -> str:
    """Return the beginning that all codes and refresh tokens of a grant share."""
    return token.partition(".")[0]


def _next_token(family: str) -> str:
    return f"{family}.{secrets.token_urlsafe(32)}"


def _after(*, seconds: int = 0, days: int = 0) -> str:
    """Return a time from now on, by the clock for expiry."""
    return shown((clock.own.expiry() + timedelta(seconds=seconds, days=days)).timestamp())
