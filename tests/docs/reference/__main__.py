"""Write the pages into docs/reference, or into the given folder, whatever the settings of the caller: make reference."""

import os
import sys
from pathlib import Path

from tests.docs.reference import write_pages

for name in [name for name in os.environ if name.startswith("KB_")]:
    del os.environ[name]
write_pages(*map(Path, sys.argv[1:]))
