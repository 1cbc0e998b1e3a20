"""Settings from the environment, for the engine and the gateway alike (requirement R-3)."""

from __future__ import annotations

from typing import Self

from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from kb.contract.errors import SettingError


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


def reveal(secret: SecretStr | None) -> str | None:
    """The text of a secret that may be unset."""
    return secret.get_secret_value() if secret else None
