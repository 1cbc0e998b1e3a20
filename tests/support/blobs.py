"""Places for files: a folder, a shared one, a bucket of a real S3 server, and the database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from kb.blobs.protocol import kept_as
from tests.conftest import free_port
from tests.support.eventually import eventually

ACCESS, SECRET = "TESTACCESSKEY", "TESTSECRETKEY123"
BUCKET = "kb"


def kept_at(originals, digest):
    """Where the file with a hash is that is kept in a folder, or would be."""
    return originals.blobs.path(kept_as(digest))


class S3Server:
    """A real S3 server (rclone's) over a folder, which can be stopped and started again at the same port."""

    def __init__(self, folder):
        self.folder = folder
        (folder / BUCKET).mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process = None

    @property
    def environment(self):
        """The settings for a client."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    def start(self):
        program = Path(sys.executable).with_name("rclone")
        asked = ["serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{ACCESS},{SECRET}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "--config", os.devnull, *asked, self.folder], stdout=log, stderr=log
            )
        eventually("the S3 server listens", self._listens)

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def s3_server(folder):
    server = S3Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
