"""Bodies for grants: access that a person gives to a program over OAuth."""

from typing import Annotated, Literal

from pydantic import Field

from kb.api.fields import Like, Reply, Request
from kb.api.key_models import Key
from kb.api.rights import Right, Scope

Digest = Annotated[str, Like(r"^[0-9a-f]{64}$", "must be 64 hexadecimal digits")]
GrantId = Annotated[str, Like(r"^[0-9a-f]{16}$", "must be 16 hexadecimal digits")]
Address = Annotated[str, Field(min_length=1, max_length=4000)]


class GrantRequest(Request):
    """The program, what it may do, and the name and the SHA-256 of the key that a person entered for it."""

    key_name: Annotated[str, Field(min_length=1, max_length=50)]
    key_digest: Digest
    client_id: Address
    client_name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)]
    resource: Address
    redirect_uri: Address
    challenge: Annotated[str, Like(r"^[A-Za-z0-9_-]{43}$", "must be 43 characters of base64url")]


class NewGrant(Reply):
    """The code, which the program exchanges for tokens within a minute. kb does not store it."""

    code: str


class GrantToken(Request):
    """A code or a refresh token."""

    kind: Literal["code", "refresh"]
    token: Annotated[str, Field(min_length=1, max_length=200)]


class Exchange(GrantToken):
    """A code or a refresh token to be exchanged, and the scopes of the new access token, if they are fewer."""

    scopes: Annotated[list[Scope], Field(max_length=3)] | None = None


class Tokens(Reply):
    """New tokens. The refresh token can be exchanged once. kb does not store them."""

    access_token: str
    refresh_token: str
    expires_in: int
    scopes: list[str]


class Grant(Reply):
    """A program's access under a key."""

    id: str
    key_name: str
    client_id: str
    client_name: str
    scopes: list[str]
    resource: str
    created_at: str
    used_at: str | None
    until: str


class FoundGrant(Grant):
    """A grant whose code or refresh token is valid."""

    key_digest: str
    redirect_uri: str
    challenge: str


class GrantList(Reply):
    """All grants, without those whose keys no longer exist."""

    grants: list[Grant]


class TokenGrant(Reply):
    """The grant of an access token."""

    id: str
    key_digest: str
    client_id: str
    client_name: str
    scopes: list[str]
    resource: str
    until: str


class IdentifiedKey(Key):
    """The key of a token. `grant` is null if the token is the key itself.

    Otherwise `right` is what the grant leaves of the key's right, `key_right`. `is_ours` is false if the key is one of
    the gateway's own settings, which only the gateway knows.
    """

    key_right: Right | None = None
    is_ours: bool = True
    grant: TokenGrant | None = None
