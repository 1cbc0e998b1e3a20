"""The entry point of `kb`."""

import sys


def start() -> None:
    """Run the command line; Ctrl-C ends it without a traceback also while it is being loaded."""
    try:
        from kb_cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    start()
