"""The gateway's settings (requirements G-1, R-3): each is the environment variable `KB_` + its name."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from kb.api.limits import MAX_UPLOAD_MB
from kb.settings import EngineKey, Key, Url, UserPath, listed


def _public(url: str) -> str:
    """Return a URL without a final slash.

    Raises:
        ValueError: it is neither https nor on this machine, or has a query.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise ValueError("it must begin with https://, except for an address of this machine")
    if parts.query or parts.fragment:
        raise ValueError("it must not have a query or a fragment")
    return url.rstrip("/")


class GatewaySettings(EngineKey):
    """The settings of the gateway.

    Args:
        engine_url: the URL of the engine.
        mcp_api_key: the keys that agents can use, separated by commas.
        mcp_api_key_file: a file with such keys, one per line; the gateway reads it again when it changes. Without a
            key, the gateway is open.
        mcp_allowed_hosts: host names of the gateway, in addition to loopback, separated by commas. Web pages from
            these hosts can call it; add the port if a page does not use the default port.
        mcp_calls_per_minute: the maximum number of tool calls and document reads per key and minute, in each process;
            0 means no limit.
        mcp_max_tokens: the maximum length of an answer in estimated tokens.
        mcp_text_clients: the clients that get answers only as text, separated by commas: the beginning of the name that
            each one reports, or * for all. These give their model the structured form of an answer, which takes
            more tokens.
        mcp_engine_seconds: the number of seconds to wait for an answer from the engine.
        mcp_upload_dir: the folder for uploads in progress; processes that serve the same agents must share it. By
            default, each process has its own folder and loses its uploads when it ends.
        mcp_upload_seconds: the maximum duration of an upload in seconds.
        mcp_max_upload_mb: the maximum size of an uploaded file in MiB.
        mcp_fetch_hosts: the hosts from which agents can add files by URL, separated by commas: example.org,
            *.example.org or * for each host with a public address. A host with a private address must be listed by
            name. By default, the gateway fetches nothing.
        public_url: the address at which other machines reach the gateway, such as https://kb.example.org. Clients that
            sign in over OAuth need it.
        mcp_oauth: let clients sign in over OAuth, if an agent key is set.
        mcp_oauth_redirects: addresses of your own clients to which OAuth may send its answer, separated by commas:
            https://example.org/callback. Programs on the same machine, Claude, ChatGPT, Cursor and Visual Studio Code
            need none.
        mcp_chatgpt: serve the tools search and fetch at /chatgpt/mcp, for clients that support no others.
        mcp_collections: also serve the collections surface at /collections/mcp.
        mcp_collection_names: the names of the collections, separated by commas; new documents go to the first.
    """

    engine_url: Url = "http://127.0.0.1:8000"
    mcp_api_key: Key | None = None
    mcp_api_key_file: UserPath | None = None
    mcp_allowed_hosts: str = ""
    mcp_calls_per_minute: Annotated[int, Field(ge=0)] = 0
    mcp_max_tokens: Annotated[int, Field(ge=5000)] = 10_000
    mcp_text_clients: str = "claude-code,codex,github-copilot,copilot,opencode"
    mcp_engine_seconds: Annotated[float, Field(gt=0)] = 60
    mcp_upload_dir: UserPath | None = None
    mcp_upload_seconds: Annotated[float, Field(gt=0)] = 600
    mcp_max_upload_mb: Annotated[int, Field(ge=1)] = MAX_UPLOAD_MB
    mcp_fetch_hosts: str = ""
    public_url: Annotated[Url, AfterValidator(_public)] | None = None
    mcp_oauth: bool = True
    mcp_oauth_redirects: str = ""
    mcp_chatgpt: bool = False
    mcp_collections: bool = False
    mcp_collection_names: str = "documents,memory,workspace"

    @property
    def hosts(self) -> list[str]:
        """The names by which clients may call the gateway besides loopback."""
        own = [urlsplit(self.public_url).netloc] if self.public_url else []
        return [*listed(self.mcp_allowed_hosts), *own]
