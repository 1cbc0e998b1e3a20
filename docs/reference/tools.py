"""The MCP tools, resources and prompts, as a client is told of them."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from fastmcp import Client

from kb.client.client import EngineClient
from kb_mcp.app import upload_limits
from kb_mcp.server import INSTRUCTIONS, create_server, register_surface
from kb_mcp.settings import GatewaySettings
from kb_mcp.tools.token_budget import AnswerLimiter
from kb_mcp.upload_store import UploadStore
from reference import markdown
from reference.schemas import fields

if TYPE_CHECKING:
    from mcp_types import Prompt, ResourceTemplate, Tool

INTRO = (
    "What the endpoint `/mcp` offers. Agents read the descriptions below word for word, with the schema of each answer."
)
COLLECTIONS = (
    "With `KB_MCP_COLLECTIONS=1` the same tools are served at `/collections/mcp` with a parameter `collection`,"
    " together with `kb_set_collection`; see [Agents and memory](../memory.md#collections)."
)


def page() -> str:
    """Tools, resources, prompts."""
    tools, templates, prompts = asyncio.run(offered())
    return markdown.page(
        "# MCP tools",
        INTRO,
        "Every client is told first:",
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
    """What a client finds; the engine is not needed for that."""
    settings = GatewaySettings.model_construct()
    uploads = UploadStore(upload_limits(settings), None)
    server = create_server([])
    register_surface(server, EngineClient(settings.engine_url), uploads, AnswerLimiter(settings.mcp_max_tokens))
    async with Client(server) as client:
        found = await client.list_tools(), await client.list_resource_templates(), await client.list_prompts()
    uploads.close()
    return found


def tool_part(tool: Tool) -> str:
    """A tool: what it is for, what it takes, what it does to the world."""
    return markdown.page(
        f"## {tool.name}",
        f"*{tool.title}.* {effect(tool)}",
        inspect.cleandoc(tool.description or ""),
        fields(tool.input_schema, {}),
    )


def effect(tool: Tool) -> str:
    """What a client may show before it asks a person."""
    if getattr(tool.annotations, "read_only_hint", False):
        return "Only reads."
    return "Replaces or deletes." if getattr(tool.annotations, "destructive_hint", True) else "Adds."


def resource_part(template: ResourceTemplate) -> str:
    """A resource."""
    return f"`{template.uri_template}` ({template.mime_type}): {template.description}"


def prompt_part(prompt: Prompt) -> str:
    """A prompt and what it asks for; what a schema adds to a description is left out."""
    rows = [
        (f"`{each.name}`", "required" if each.required else "", first_line(each.description))
        for each in prompt.arguments or []
    ]
    return markdown.page(f"### {prompt.name}", prompt.description or "", markdown.table(("argument", "", ""), rows))


def first_line(text: Any) -> str:  # noqa: ANN401 - a text or nothing
    """The first line of a text."""
    return (text or "").partition("\n")[0]
