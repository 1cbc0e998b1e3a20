"""`kb serve` with the limits in LIMITS instead of the constants of its server."""

from __future__ import annotations

import json
import os

from kb_cli import server
from tests.support.modified_server import serve_altered

if __name__ == "__main__":
    for name, value in json.loads(os.environ["LIMITS"]).items():
        setattr(server, name, value)
    serve_altered(lambda _: None)
