"""A server that behaves as the model hub does: it announces digests, redirects to where files are, and sends ranges."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


@dataclass
class ModelHub:
    """Serves the files of a folder for any repository.

    `breaks` are the numbers of bytes after which the next answers with weights are cut off. `wrong` is sent instead of
    the weights. `asked` are the paths with the first byte that was asked for, and `hosts` the
    machines that were meant.
    """

    folder: Path
    url: str = ""
    breaks: list[int] = field(default_factory=list)
    wrong: bytes | None = None
    announces: bool = True
    knows_ranges: bool = True
    refuses: int = 0
    asked: list[tuple[str, int]] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def content(self, name):
        path = self.folder / name
        if name.endswith(".safetensors") and self.wrong is not None:
            return self.wrong
        return path.read_bytes() if path.is_file() else None


@contextmanager
def model_hub(folder):
    """Run such a server, and yield it."""
    hub = ModelHub(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            path = urlsplit(self.path).path  # a proxy is asked for whole addresses
            hub.hosts.add(self.headers["Host"])
            _, _, name = path.partition("/resolve/main/")
            if name:
                return self.redirect(name)
            return self.send(path.removeprefix("/files/"))

        def redirect(self, name):
            content = hub.content(name)
            self.send_response(503 if hub.refuses else 302 if content is not None else 404)
            if hub.refuses:
                hub.refuses -= 1
            elif content is not None:
                self.send_header("Location", f"/files/{name}")
                if hub.announces and name.endswith((".safetensors", "tokenizer.json")):
                    announced = hub.folder / name
                    self.send_header("X-Linked-Etag", f'"{hashlib.sha256(announced.read_bytes()).hexdigest()}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def send(self, name):
            content = hub.content(name)
            asked = self.headers.get("Range") if hub.knows_ranges else None
            begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            hub.asked.append((name, begin))
            if asked and begin >= len(content):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206 if asked else 200)
            rest = content[begin:]
            self.send_header("Content-Length", str(len(rest)))
            if asked:
                self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            if hub.breaks and name.endswith(".safetensors"):
                rest, self.close_connection = rest[: hub.breaks.pop(0)], True
            return self.wfile.write(rest)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
