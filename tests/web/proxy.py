"""A reverse proxy that serves the web interface under a path, without a header that names the path."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx2

OF_CONNECTION = ("connection", "transfer-encoding", "keep-alive")


@contextmanager
def proxied(url, prefix):
    """The address of the pages below the path, through a proxy that passes everything on as it comes."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self):
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404, "This is not below the path")
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            place = url + self.path.removeprefix(prefix)
            with httpx2.stream(self.command, place, content=body, headers=kept) as answer:
                self.send_response(answer.status_code)
                for name, value in answer.headers.multi_items():
                    if name not in OF_CONNECTION:
                        self.send_header(name, value)
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):  # the page was left
                    for block in answer.iter_raw():
                        self.wfile.write(block)
                        self.wfile.flush()

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
