"""The gateway's settings (requirements G-1, R-3): each is the environment variable `KB_` + its name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kb.contract.settings import EnvSettings, Key, Url


class Settings(EnvSettings):
    """What the gateway can be told.

    Args:
        engine_url: where the engine is.
        api_key: the engine's key, if it has one.
        mcp_api_key: the key that agents must send; without one the gateway is open.
        mcp_allowed_hosts: names besides loopback that the gateway may be called by, with commas between them.
        mcp_max_upload_mb: the largest file an agent may upload, in MiB.
    """

    engine_url: Url = "http://127.0.0.1:8000"
    api_key: Key | None = None
    mcp_api_key: Key | None = None
    mcp_allowed_hosts: str = ""
    mcp_max_upload_mb: Annotated[int, Field(ge=1)] = 512
