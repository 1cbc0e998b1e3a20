"""Send answers only as text to clients that would give the model the structured form instead."""

from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp_types import ContentBlock

from kb_mcp.clients import client_name
from kb_mcp.middleware import NextTool, ToolCall


class TextAnswer(ToolResult):
    """An answer that reaches the client without its structured content."""

    def to_mcp_result(self) -> list[ContentBlock]:
        return self.content


class TextAnswers(Middleware):
    """Omits the structured form for some clients, because a model reads the text with fewer tokens.

    Args:
        clients: the beginnings of the clients' names in lower case; an asterisk for all clients.
    """

    def __init__(self, clients: list[str]) -> None:
        self._every = "*" in clients
        self._clients = tuple(clients)

    async def on_call_tool(self, context: ToolCall, call_next: NextTool) -> ToolResult:
        result = await call_next(context)
        if result.is_error or not (self._every or client_name().lower().startswith(self._clients)):
            return result
        return TextAnswer(content=result.content, structured_content=result.structured_content)
