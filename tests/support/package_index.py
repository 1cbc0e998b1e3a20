"""A package index on this machine: it takes uploads as `twine` and `uv publish` send them, and lists files by PEP 503."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, make_server

from python_multipart import parse_form


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def package_index(folder):
    """Run it, and yield its URL. `folder` gets the uploaded files."""
    server = make_server("127.0.0.1", 0, lambda *call: answered(folder, *call), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answered(folder, request, start):
    kind, _, name = request["PATH_INFO"].strip("/").partition("/")
    status, body = "200 OK", b""
    if request["REQUEST_METHOD"] == "POST":
        keep_upload(folder, request)
    elif kind == "simple" and (files := files_of(folder, name)):
        body = "".join(link(file) for file in files).encode()
    elif kind == "files" and (folder / name).is_file():
        body = (folder / name).read_bytes()
    else:
        status = "404 Not Found"
    start(status, [("Content-Type", "text/html" if kind == "simple" else "application/octet-stream")])
    return [body]


def keep_upload(folder, request):
    headers = {"Content-Type": request["CONTENT_TYPE"].encode(), "Content-Length": request["CONTENT_LENGTH"].encode()}

    def keep(file):
        file.file_object.seek(0)
        (folder / file.file_name.decode()).write_bytes(file.file_object.read())
        file.close()

    parse_form(headers, request["wsgi.input"], None, keep)


def files_of(folder, project):
    return [file for file in sorted(folder.iterdir()) if file.name.replace("_", "-").startswith(f"{project}-")]


def link(file):
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return f'<a href="/files/{file.name}#sha256={digest}">{file.name}</a><br>'
