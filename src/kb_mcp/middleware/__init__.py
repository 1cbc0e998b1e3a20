"""The middleware of every MCP call."""

from fastmcp.resources import ResourceResult
from fastmcp.server.middleware import CallNext, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams, ReadResourceRequestParams

ToolCall = MiddlewareContext[CallToolRequestParams]
NextTool = CallNext[CallToolRequestParams, ToolResult]
ResourceRead = MiddlewareContext[ReadResourceRequestParams]
NextResource = CallNext[ReadResourceRequestParams, ResourceResult]
