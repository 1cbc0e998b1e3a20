"""How Sphinx makes the site (make docs). Nothing is fetched: themes, fonts and the search index are all local."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from reference import write_pages

from kb import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "kb"
root_doc = "README"
release = __version__
extensions = ["myst_parser"]
exclude_patterns = ["reference/settings.md", "reference/clients.md"]  # parts of other pages
nitpicky = True

myst_heading_anchors = 3
# A block that does not run here says so behind its language: ```sh notest: needs Docker
REASON = r"(?m)^(```\w+) notest: .*$"

html_theme = "furo"
html_favicon = "favicon.svg"
html_static_path = ["static"]
html_js_files = ["copy.js"]
html_css_files = ["copy.css"]
html_title = f"kb {__version__}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Make the generated pages before any page is read, and show blocks without why they do not run in the tests."""
    app.connect("config-inited", lambda *_: write_pages(Path(app.srcdir)))
    app.connect("source-read", strip_reasons)


def strip_reasons(_: Sphinx, __: str, content: list[str]) -> None:
    """Leave of a block's first line only its language."""
    import re

    content[0] = re.sub(REASON, r"\1", content[0])
