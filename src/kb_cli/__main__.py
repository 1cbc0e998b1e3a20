"""The entry point of `kb`."""

import gc
import os
import sys

# What is imported stays: looking for garbage in it takes a tenth of a short command.
gc.disable()


def start() -> None:
    """Run the command line; Ctrl-C ends it without a traceback also while it is being loaded."""
    try:
        from kb_cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as ended:
        end(ended)


def end(ended: SystemExit) -> None:
    """End without what Python would tidy up, where that is nothing: it takes another tenth."""
    import threading

    if "asyncio" in sys.modules or threading.active_count() > 1 or not isinstance(ended.code, int):
        raise ended
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended.code)


if __name__ == "__main__":
    start()
