"""`kb serve` with an addition for a test."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

from kb.asgi.subapps import choose, compose, installed
from kb.settings import listed, with_flags
from kb_cli.server import APPS, ENGINE, ServeSettings, listen, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette


def serve_altered(alter: Callable[[Starlette], None]) -> None:
    """Serve as `kb serve` does, with its flags that `start_server` gives, after `alter` had the app."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port")
    parser.add_argument("--data-dir")
    flags = parser.parse_args()
    environment = with_flags(os.environ, **vars(flags))
    settings = ServeSettings.read(environment)
    app = compose(choose(installed(APPS), listed(settings.apps)), ENGINE, environment)
    alter(app)
    with listen(settings) as listener:
        asyncio.run(serve(listener, app))
