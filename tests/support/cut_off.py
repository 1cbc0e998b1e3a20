"""A restore that is killed after unpacking, before or after it has moved some of the files."""

from __future__ import annotations

import signal
import subprocess
import sys

RESTORE = """
import os, signal, sys
from pathlib import Path
from kb.backup.restore import restore_backup
from kb.settings import Settings

renames = iter(range(int(sys.argv[4])))

def count(event, _):
    if event == "os.rename" and next(renames, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
restore_backup(Settings(data_dir=sys.argv[1], database_url=sys.argv[3] or None), Path(sys.argv[2]))
"""


def cut_off_restore(data_dir, backups, database_url=""):
    """Restore the newest of some backups so, before anything has its place."""
    renames = 2 if database_url else 1  # of what is unpacked, in each folder
    assert is_killed_after(renames, data_dir, backups, database_url)


def is_killed_after(renames, data_dir, backups, database_url=""):
    """Restore the newest of some backups, kill that after some renames, and say whether there were more to come."""
    ended = subprocess.run([sys.executable, "-c", RESTORE, data_dir, backups, database_url, str(renames)], check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0
