"""Files of this machine for agents that use `kb stdio`: kb_upload_start takes a path below allowed folders."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

Message = dict[str, Any]
Post = Callable[[Message], Iterator[Message]]
Put = Callable[[str, BinaryIO, int], tuple[int, bytes]]

NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags that refuse a link, and open a named pipe without waiting for its writer."""

TOOL: Final = "kb_upload_start"
PARAMETER: Final = {"type": "string", "description": "File on this machine, instead of total_size: /home/ann/a.pdf."}


class LocalFiles:
    """Adds the parameter `path` to the tool, and sends the file of a call that has it.

    Args:
        roots: the folders whose files agents may add.
        post: passes a message on, and yields the responses.
        put: sends a file to a URL, and returns the status and the body of the response.
    """

    def __init__(self, roots: Sequence[Path], post: Post, put: Put) -> None:
        self._roots = [root.expanduser().resolve() for root in roots]
        self._post = post
        self._put = put

    def answers(self, message: Message) -> Iterator[Message]:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        arguments = params.get("arguments")
        if message.get("method") == "tools/list":
            yield from map(_with_path, self._post(message))
        elif params.get("name") == TOOL and isinstance(arguments, dict) and arguments.get("path"):
            yield from self._send(message, params, arguments)
        else:
            yield from self._post(message)

    def _send(self, message: Message, params: Message, arguments: Message) -> Iterator[Message]:
        try:
            if both := [name for name in ("text", "url") if arguments.get(name)]:
                raise ValueError(f"cannot be combined with {both[0]}.")
            path = self._allowed(str(arguments["path"]))
            file = _opened(path)
        except (OSError, ValueError) as error:
            yield _result(message, f"path: {error}", is_error=True)
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            given = {name: value for name, value in arguments.items() if name != "path"}
            started = {"filename": path.name, "source_path": str(path)} | given | {"total_size": size}
            for answer in self._post(message | {"params": params | {"arguments": started}}):
                yield self._sent(message, answer, file, size) if "result" in answer else answer

    def _sent(self, message: Message, answer: Message, file: BinaryIO, size: int) -> Message:
        """Return the response after the file was sent; the same response if the tool refused the file."""
        if answer["result"].get("isError"):
            return answer
        status, body = self._put(json.loads(answer["result"]["content"][0]["text"])["upload_url"], file, size)
        receipt = json.loads(body)
        if status >= 400:
            return _result(message, str(receipt.get("detail", status)), is_error=True)
        result = answer["result"] | {"content": [{"type": "text", "text": json.dumps(receipt)}]}
        return answer | {"result": result | ({"structuredContent": receipt} if "structuredContent" in result else {})}

    def _allowed(self, name: str) -> Path:
        """Return the path of a regular file below a root, without links that lead out of it and hidden names.

        Raises:
            OSError: the file does not exist.
            ValueError: it is not below a root, or hidden there.
        """
        given = Path(name).expanduser()
        if not given.is_absolute():
            raise ValueError("must be an absolute path, such as /home/ann/a.pdf.")
        path = given.resolve()
        below = [path.relative_to(root).parts for root in self._roots if path.is_relative_to(root)]
        if not below:
            roots = ", ".join(map(str, self._roots))
            raise ValueError(f"{name} is outside the folders that the user has allowed: {roots}.")
        if all(any(part.startswith(".") for part in parts) for parts in below):
            raise ValueError(f"{name} is hidden. kb adds no hidden files, because they may contain passwords or keys.")
        if not path.exists():
            raise ValueError(f"{name} does not exist.")
        if not path.is_file():
            raise ValueError(f"{name} is not a regular file.")
        return path


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | NO_LINK)


def _opened(path: Path) -> BinaryIO:
    """Open a file whose path has just been checked.

    Raises:
        OSError: it cannot be read.
        ValueError: a link or another file has taken its place.
    """
    file = open(path, "rb", opener=_without_links)  # noqa: SIM115 - the caller closes it
    opened = os.fstat(file.fileno())
    if stat.S_ISREG(opened.st_mode) and path.resolve() == path and os.path.samestat(opened, path.stat()):
        return file
    file.close()
    raise ValueError(f"{path} was replaced just now. Try again.")


def _with_path(answer: Message) -> Message:
    """Return a list of tools with the parameter."""
    for tool in (answer.get("result") or {}).get("tools") or ():
        if tool.get("name") == TOOL:
            schema = tool["inputSchema"]
            schema["properties"]["path"] = PARAMETER
            schema["required"] = [name for name in schema.get("required", []) if name != "filename"]
    return answer


def _result(message: Message, text: str, *, is_error: bool) -> Message:
    result = {"content": [{"type": "text", "text": text}], "isError": is_error, "resultType": "complete"}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
