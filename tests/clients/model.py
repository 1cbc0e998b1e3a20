"""A language model that follows a script, for a client that will not move without one."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.conftest import free_port


@contextmanager
def scripted_model(tool, arguments, heard=None):
    """The URL of a Messages API whose model calls the tool once, if it has it, and then is done.

    What it is asked is added to `heard`.
    """

    async def messages(request):
        asked = await request.json()
        if heard is not None:
            heard.append(asked)
        has_tool = any(offered["name"] == tool for offered in asked.get("tools", []))
        if has_tool and "tool_result" not in json.dumps(asked["messages"]):
            block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
        return StreamingResponse(answer(asked["model"], block, delta), media_type="text/event-stream")

    port = free_port()
    app = Starlette(routes=[Route("/v1/messages", messages, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def answer(model, block, delta):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    stop = {"stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None}
    for event in (
        {"type": "message_start", "message": message | {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
