from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """A collector of traces for OTLP over HTTP."""

    def __init__(self):
        self.spans = []
        self.raw = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path, body):
        assert path == "/v1/traces"
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
            self.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]

    def find(self, name):
        """The one span of that name."""
        [(service, span)] = [(service, span) for service, span in self.spans if span.name == name]
        return service, span


@pytest.fixture
def collector():
    collecting = Collector()
    thread = threading.Thread(target=collecting.server.serve_forever)
    thread.start()
    yield collecting
    collecting.server.shutdown()
    thread.join()
    collecting.server.server_close()


@pytest.fixture
def start_stack(start_server, tmp_path):
    """Starts engine and gateway as two processes: `with start_stack(KB_LOG_FORMAT="json") as (engine, gateway)`."""

    @contextmanager
    def start(**environment):
        with start_server(tmp_path / "engine", KB_APPS="api,metrics", **environment) as engine:
            here = {"KB_APPS": "mcp,metrics", "KB_ENGINE_URL": engine.url}
            with start_server(tmp_path / "gateway", **here, **environment) as gateway:
                yield engine, gateway

    return start


def lines(server):
    """The server's log, each line an object."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]
