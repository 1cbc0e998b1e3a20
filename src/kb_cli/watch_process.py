"""The child of `kb serve` that watches this machine's folders for its engine."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kb.api.errors import Invalid
from kb.running_engine import data_folder, first_key
from kb_cli.sync.watch_records import records_folder

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 10.0
"""The time before a child that ended is started again."""

STOP_SECONDS: Final = 2.0
ADD_SECONDS: Final = 60.0
WATCH: Final = (sys.executable, "-m", "kb_cli", "watch")


@contextmanager
def watching(url: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Watch folders during the block, as soon as this machine has any.

    Args:
        url: the address of the engine.
        environment: the settings of the engine, with its key.
    """
    stopped = threading.Event()
    child = Child(url, environment)
    thread = threading.Thread(target=child.keep, args=[stopped], name="kb-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(STOP_SECONDS)
        child.stop()


class Child:
    """A process that ends with this one, in any way: it notices that its pipe closes.

    Args:
        url: the address of the engine.
        environment: the settings of the engine, with its key.
    """

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self._url = url
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self, stopped: threading.Event) -> None:
        """Start the process when there is a folder to watch, and again if it ends."""
        pause = LOOK_SECONDS
        while not stopped.wait(pause):
            pause = LOOK_SECONDS
            if self._process is None and has_records():
                self._start()
            elif self._process and (code := self._process.poll()) is not None:
                logger.warning("the program that watches folders exited with code %s; kb is restarting it", code)
                self._process, pause = None, AGAIN_SECONDS

    def stop(self) -> None:
        """End the process; an unfinished round continues at the next start."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _start(self) -> None:
        command = [*WATCH, "run", "--child"]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this program
                command,
                env=client_environment(self._url, self._environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        except OSError as error:
            logger.warning("kb cannot start the program that watches folders: %s", error)


def client_environment(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    others = ("KB_PROFILE", "KB_MCP_API_KEY", "KB_MCP_URL")
    own = {name: value for name, value in environment.items() if name not in others}
    return own | {"KB_ENGINE_URL": url, "KB_API_KEY": engine_key(environment)}


def watch_folder(url: str, environment: Mapping[str, str], path: str, *, name: str, delete: bool, both: bool) -> str:
    """Run `kb watch add`; arguments and errors as for `kb.asgi.subapps.WatchFolder`."""
    options = [*(["--as", name] if name else []), *(["--delete"] if delete else []), *(["--both"] if both else [])]
    command = [*WATCH, "add", *options, "--", path]
    own, silent = client_environment(url, environment), subprocess.DEVNULL
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command, env=own, stdin=silent, capture_output=True, text=True, timeout=ADD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Invalid(f"The disk with {path} did not respond within {ADD_SECONDS:.0f} seconds.") from None
    if done.returncode:
        raise Invalid(done.stderr.strip().removeprefix("kb: "))
    return done.stdout.strip()


def has_records() -> bool:
    with suppress(OSError, RuntimeError):  # an account without a home folder
        return any(records_folder().glob("*.json"))
    return False


def engine_key(environment: Mapping[str, str]) -> str:
    """Return the key of the engine: from its setting, the first one in its file of keys, or the first key if made."""
    if key := environment.get("KB_API_KEY", "").strip():
        return key
    if not environment.get("KB_API_KEY_FILE"):
        return first_key(data_folder(environment)) or ""
    with suppress(OSError, ValueError):
        from kb.settings import keys_in

        return keys_in(Path(environment.get("KB_API_KEY_FILE", "")).expanduser())[0]
    return ""
