"""Settings from the environment, for the engine and the gateway alike (requirement R-3)."""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from kb.api.errors import SettingError


class EnvSettings(BaseSettings):
    """Each field `name` is read from the variable `KB_NAME`; an empty variable counts as unset."""

    model_config = SettingsConfigDict(env_prefix="KB_", env_ignore_empty=True, frozen=True, extra="forbid")

    @classmethod
    def read(cls) -> Self:
        """The settings of this process.

        Raises:
            SettingError: a value is wrong; one line that names the variable and never quotes its value.
        """
        try:
            return cls()
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            variable = "KB_" + "_".join(str(part) for part in first["loc"]).upper()
            raise SettingError(f"{variable}: {first['msg']}") from None


def listed(names: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]


def key_text(text: str) -> str:
    """A key as it is sent in a header, without the white space around it.

    Raises:
        ValueError: it holds what headers do not; the message never quotes it.
    """
    key = text.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("a key holds only visible ASCII characters")
    return key


def _key(value: object) -> object:
    return key_text(value) if isinstance(value, str) else value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise ValueError("must hold no user and password: the URL is shown to those who ask, and KB_API_KEY is the key")
    return value


Key = Annotated[SecretStr, BeforeValidator(_key)]
Url = Annotated[str, AfterValidator(_url)]


def reveal(secret: SecretStr | None) -> str | None:
    """The text of a secret that may be unset."""
    return secret.get_secret_value() if secret else None
