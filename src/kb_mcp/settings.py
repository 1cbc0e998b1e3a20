"""The gateway's settings (requirements G-1, R-3): each is the environment variable `KB_` + its name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kb.settings import EngineKey, Key, Url, UserPath


class GatewaySettings(EngineKey):
    """What the gateway can be told.

    Args:
        engine_url: where the engine is.
        mcp_api_key: the keys that agents may send, with commas between them.
        mcp_api_key_file: a file with such keys, one a line, read again when it changes. Without a key the gateway is
            open.
        mcp_allowed_hosts: names besides loopback that the gateway may be called by, and whose pages may call it, with
            commas between them; pages at another port than the usual one with that port.
        mcp_calls_per_minute: how many calls of tools and reads of documents a key has a minute in each process; 0 is
            no limit.
        mcp_max_tokens: how long an answer may be, in estimated tokens.
        mcp_engine_seconds: how long to wait for the engine's answer.
        mcp_upload_dir: where uploads are staged; several processes that serve the same agents must share one. Otherwise
            each process has its own, and loses what is in it when it ends.
        mcp_upload_seconds: how long an upload may take.
        mcp_max_upload_mb: the largest file an agent may upload, in MiB.
        mcp_chatgpt: serve the tools search and fetch, for clients that know no others, at /chatgpt/mcp.
        mcp_collections: serve the collections surface, too, at /collections/mcp.
        mcp_collection_names: the collections, with commas between them; new documents go to the first one.
    """

    engine_url: Url = "http://127.0.0.1:8000"
    mcp_api_key: Key | None = None
    mcp_api_key_file: UserPath | None = None
    mcp_allowed_hosts: str = ""
    mcp_calls_per_minute: Annotated[int, Field(ge=0)] = 0
    mcp_max_tokens: Annotated[int, Field(ge=5000)] = 10_000
    mcp_engine_seconds: Annotated[float, Field(gt=0)] = 60
    mcp_upload_dir: UserPath | None = None
    mcp_upload_seconds: Annotated[float, Field(gt=0)] = 600
    mcp_max_upload_mb: Annotated[int, Field(ge=1)] = 512
    mcp_chatgpt: bool = False
    mcp_collections: bool = False
    mcp_collection_names: str = "documents,memory,workspace"
