"""MCP over standard input and output, for clients that only start programs: a bridge to the endpoint of `kb serve`.

It does not open the database: it finds the one server or starts it. It imports only the standard library at first.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any, BinaryIO, Final, TextIO
from urllib.parse import SplitResult, urlsplit

from kb.running_engine import ENGINE_GONE

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
WORKERS: Final = 16
"""Messages processed concurrently."""

START_SECONDS: Final = 120
PAUSE: Final = 0.1
ANSWER_SECONDS: Final = 1200
HELLOS: Final = ("initialize", "server/discover", "ping")
HELLO_SECONDS: Final = 30
"""How long the first messages wait: another program may hold the port and never answer."""
INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
VERSION_FIELD: Final = "io.modelcontextprotocol/protocolVersion"
NAMES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter in the header Mcp-Name, by method."""

LINE_ENDS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""Characters that JSON allows in a text, but at which some clients end a line, with their escapes."""

Message = dict[str, Any]


class Endpoint:
    """The endpoint of the server.

    Args:
        key_headers: returns the headers with the key, for each message.
        log: the file for the output of a server started here.
    """

    def __init__(self, url: str, key_headers: Callable[[], Mapping[str, str]], log: Path) -> None:
        self._url: SplitResult = urlsplit(url)
        self._key_headers = key_headers
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._log = log
        self.version: str | None = None
        self._sent: dict[object, HTTPConnection] = {}
        self._given_up = set[object]()

    def post(self, message: Message) -> Iterator[Message]:
        """Yield the server's responses to a message; find or start a stopped server again.

        Raises:
            OSError: the server cannot be reached or started.
        """
        seconds = HELLO_SECONDS if message.get("method") in HELLOS else ANSWER_SECONDS
        with closing(self._connect(seconds)) as connection:
            try:
                connection.connect()
            except ConnectionRefusedError:  # nothing of the message was sent
                self.await_server()
                connection.connect()
            headers = {**self._headers, **self._key_headers(), **self._headers_of(message)}
            # programs split surrogate pairs, and the gateway would refuse the halves
            body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
            with self._cancellable(message, connection):
                connection.request("POST", self._url.path, body, headers)
                yield from _answers(connection.getresponse(), message)

    @contextmanager
    def _cancellable(self, message: Message, connection: HTTPConnection) -> Iterator[None]:
        """Let `cancel` end the connection during the block, or before it."""
        self._sent[message.get("id")] = connection
        try:
            if message.get("id") in self._given_up:
                raise OSError("the request was given up")
            yield
        finally:
            self._sent.pop(message.get("id"), None)

    def cancel(self, request: str | int) -> None:
        """End the connection of a request, whose answer nobody awaits."""
        self._given_up.add(request)
        connection = self._sent.get(request)
        if connection and connection.sock:
            with suppress(OSError):
                connection.sock.shutdown(SHUT_RDWR)

    def identify(self, message: Message) -> None:
        """Send the name of the client, which is only in its first message, with each later one."""
        params = message.get("params")
        info = params.get("clientInfo") if isinstance(params, dict) else None
        if not isinstance(info, dict):
            return
        name = " ".join(str(info.get(field, "")) for field in ("name", "version")).strip()
        if name and name.isascii() and name.isprintable():
            self._headers["User-Agent"] = name

    def put(self, url: str, file: BinaryIO, size: int) -> tuple[int, bytes]:
        """Send a file to a URL of the server; return the status and the body of the response."""
        with closing(self._connect(ANSWER_SECONDS)) as connection:
            connection.request("PUT", urlsplit(url).path, file, {"Content-Length": str(size)})
            response = connection.getresponse()
            return response.status, response.read()

    def await_server(self) -> None:
        """Wait until the server is ready; start it unless another process does.

        Raises:
            OSError: it does not start, or kb cannot start it because it is on another machine or uses HTTPS.
        """
        if self._is_ready():
            return
        if self._url.hostname not in LOOPBACK or self._url.scheme != "http":
            raise OSError(f"no server answers at {self._url.geturl()}; check KB_MCP_URL")
        from filelock import FileLock

        self._log.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._log.with_suffix(".lock"), timeout=START_SECONDS):
            process = None if self._is_ready() else self._start()
            deadline = time.monotonic() + START_SECONDS
            while not self._is_ready():
                has_ended = process is not None and process.poll() is not None
                if time.monotonic() > deadline or (has_ended and self._answer("/healthz") is None):
                    raise OSError(f"'kb serve' did not start; see its log {self._log}")
                time.sleep(PAUSE)

    def _start(self) -> subprocess.Popen[bytes]:
        with open(self._log, "wb", opener=private) as log:
            command = [sys.executable, "-m", "kb_cli.main", "serve", "--port", str(self._url.port or 80)]
            return subprocess.Popen(  # noqa: S603 - kb itself
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _is_ready(self) -> bool:
        """Return whether the gateway is ready; without its engine, its answers say so."""
        return self._answer("/readyz") in ("ready", ENGINE_GONE)

    def _answer(self, path: str) -> str | None:
        with closing(self._connect(5)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().read(100).decode(errors="replace")
            except (OSError, HTTPException):
                return None

    def _connect(self, seconds: float) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.hostname or "", self._url.port, timeout=seconds)

    def _headers_of(self, message: Message) -> dict[str, str]:
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get(VERSION_FIELD) or self.version
        headers = {"Mcp-Method": str(message.get("method", ""))}
        if version:
            headers["MCP-Protocol-Version"] = str(version)
        if name := params.get(NAMES.get(str(message.get("method")), "")):
            headers["Mcp-Name"] = encoded(str(name))
        return headers


class Bridge:
    """Passes messages on, several at once, and writes each response as one line.

    Args:
        endpoint: receives the messages.
        output: gets the responses.
        answers: yields the responses to a message, by default the endpoint's responses.
    """

    def __init__(
        self, endpoint: Endpoint, output: TextIO, answers: Callable[[Message], Iterator[Message]] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._answers = answers or endpoint.post
        self._output = output
        self._lock = threading.Lock()
        self._pending: dict[object, Future[None]] = {}
        self._cancelled = set[object]()

    def run(self, lines: Iterator[str]) -> None:
        """Pass on messages until the input ends, and wait for the responses."""
        with ThreadPoolExecutor(WORKERS) as pool:  # its end waits
            for line in filter(str.strip, lines):
                message = self._parsed(line)
                if message is None:
                    continue
                if message.get("method") == "initialize":
                    self._endpoint.identify(message)
                    self._pass_on(message)  # later messages use the negotiated version
                    continue
                if message.get("method") == "notifications/cancelled":
                    self._cancel(message.get("params"))
                    continue
                self._pending = {key: future for key, future in self._pending.items() if not future.done()}
                self._pending[message.get("id", object())] = pool.submit(self._pass_on, message)

    def _parsed(self, line: str) -> Message | None:
        try:
            message = json.loads(line.removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and isinstance(message.get("id", ""), str | int):
            return message
        why = "Its id is neither a string nor a number." if isinstance(message, dict) else "It is not a JSON object."
        self._write(error_answer({"id": None}, f"kb cannot read the message. {why}", PARSE_ERROR))
        return None

    def _cancel(self, params: object) -> None:
        """Give up a request: it needs no answer, and no other request waits for it."""
        request = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(request, str | int) and (future := self._pending.get(request)):
            self._cancelled.add(request)
            if not future.cancel():
                self._endpoint.cancel(request)

    def _pass_on(self, message: Message) -> None:
        try:
            for answer in self._answers(message):
                if message.get("method") == "initialize":
                    self._endpoint.version = (answer.get("result") or {}).get("protocolVersion")
                if message.get("id") not in self._cancelled:
                    self._write(answer)
        except (OSError, HTTPException, ValueError) as error:
            self._refuse(message, f"kb cannot be reached: {error}")
        except Exception as error:  # noqa: BLE001 - the client must receive a response
            self._refuse(message, f"kb cannot pass the message on: {type(error).__name__}: {error}")

    def _refuse(self, message: Message, text: str) -> None:
        if "id" in message and message["id"] not in self._cancelled:
            self._write(error_answer(message, text))

    def _write(self, message: Message) -> None:
        with self._lock:
            line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).translate(LINE_ENDS)
            self._output.write(f"{line}\n")
            self._output.flush()


def private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    Path(path).touch(mode=0o600)
    Path(path).chmod(0o600)
    return os.open(path, flags)


def encoded(value: str) -> str:
    """Return a text as a header value: unchanged, or in base64 if it contains other characters (SEP-2243)."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    from base64 import b64encode

    return f"=?base64?{b64encode(value.encode()).decode()}?="


def error_answer(message: Message, text: str, code: int = INTERNAL_ERROR) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}}


def _answers(answer: HTTPResponse, message: Message) -> Iterator[Message]:
    if answer.getheader("Content-Type", "").startswith("text/event-stream"):
        for line in answer:
            if line.startswith(b"data:") and (data := line[5:].strip()):
                yield json.loads(data)
        return
    body = answer.read()
    if not body:
        return
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = {}
    if "jsonrpc" in parsed:  # the gateway does not know the id of what it cannot read
        yield parsed | ({"id": message["id"]} if parsed.get("id", "") is None and "id" in message else {})
    elif "id" in message:
        detail = parsed.get("detail") or f"{answer.status} {answer.reason}"
        yield error_answer(message, f"kb refused the message: {detail}")
