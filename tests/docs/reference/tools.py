"""The MCP tools, resources, and prompts, as clients list them."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from fastmcp import Client

from kb.client.client import EngineClient
from kb_mcp.app import upload_limits
from kb_mcp.server import INSTRUCTIONS, UNLISTED, create_server, register_surface
from kb_mcp.settings import GatewaySettings
from kb_mcp.tools.token_budget import AnswerLimiter
from kb_mcp.upload_store import UploadStore
from kb_mcp.url_fetch import Fetcher
from tests.docs.reference import markdown
from tests.docs.reference.schemas import fields

if TYPE_CHECKING:
    from mcp_types import Prompt, ResourceTemplate, Tool

INTRO = (
    "The tools, resources, and prompts of the MCP endpoint `/mcp`, with the descriptions that agents read."
    " Agents also get the schema of each result."
)
COLLECTIONS = (
    "With `KB_MCP_COLLECTIONS=1`, kb also serves these tools at `/collections/mcp`, with a `collection` parameter"
    " and the tool `kb_set_collection`. [Agent memory](../memory.md#collections) explains collections."
)


def page() -> str:
    """Return the tools, resources, and prompts."""
    tools, templates, prompts = asyncio.run(offered())
    return markdown.page(
        "# MCP tools",
        INTRO,
        "The endpoint sends these instructions first:",
        f"> {INSTRUCTIONS}",
        *map(tool_part, tools),
        "## Resources",
        *map(resource_part, templates),
        "## Prompts",
        *map(prompt_part, prompts),
        "## Collections",
        COLLECTIONS,
    )


async def offered() -> tuple[list[Tool], list[ResourceTemplate], list[Prompt]]:
    """Return the lists that a client gets. No engine is needed."""
    settings = GatewaySettings.model_construct()
    uploads = UploadStore(upload_limits(settings), None)
    server = create_server([])
    register_surface(
        server, EngineClient(settings.engine_url), uploads, AnswerLimiter(settings.mcp_max_tokens), Fetcher([], 0)
    )
    async with Client(server) as client:
        found = await client.list_tools(), await client.list_resource_templates(), await client.list_prompts()
    uploads.close()
    return found


def tool_part(tool: Tool) -> str:
    """Return the section of a tool: effect, description, and parameters."""
    return markdown.page(
        f"## {tool.name}",
        f"*{tool.title}.* {effect(tool)}",
        inspect.cleandoc(tool.description or ""),
        fields(tool.input_schema, {}),
        unlisted(tool.name),
    )


def unlisted(tool: str) -> str:
    """Return the parameters that the list leaves out."""
    names = ", ".join(f"`{name}`" for name in sorted(UNLISTED.get(tool, ())))
    return (
        f"To save tokens, the list leaves out these parameters, which the tool also accepts: {names}." if names else ""
    )


def effect(tool: Tool) -> str:
    """Return the effect of a tool, from its annotations."""
    if getattr(tool.annotations, "read_only_hint", False):
        return "Read-only."
    return "Replaces or deletes." if getattr(tool.annotations, "destructive_hint", True) else "Adds."


def resource_part(template: ResourceTemplate) -> str:
    """Return the line of a resource."""
    return f"`{template.uri_template}` ({template.mime_type}): {template.description}"


def prompt_part(prompt: Prompt) -> str:
    """Return the section of a prompt, without the schemas in the descriptions of its arguments."""
    rows = [
        (f"`{each.name}`", "yes" if each.required else "no", first_line(each.description))
        for each in prompt.arguments or []
    ]
    return markdown.page(
        f"### {prompt.name}", prompt.description or "", markdown.table(("Argument", "Required", "Meaning"), rows)
    )


def first_line(text: Any) -> str:
    """Return the first line of a text."""
    return (text or "").partition("\n")[0]
