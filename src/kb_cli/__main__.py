"""The entry point of `kb`."""

import gc
import os
import sys

# Imported modules stay; collecting garbage in them would take a tenth of a short command.
gc.disable()


def start() -> None:
    """Run the command line; Ctrl-C stops it without a traceback, even during the import."""
    try:
        if sys.argv[1:] == ["hook"]:  # it runs at each prompt, and needs no parser of options
            from kb_cli.commands.hook import hook as main
        else:
            from kb_cli.main import main
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as ended:
        end(ended)


def end(ended: SystemExit) -> None:
    """Exit without Python's cleanup if there is nothing to clean up: it would take another tenth."""
    import threading

    if "asyncio" in sys.modules or threading.active_count() > 1 or not isinstance(ended.code, int):
        raise ended
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ended.code)


if __name__ == "__main__":
    start()
