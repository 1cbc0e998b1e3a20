"""How Sphinx makes the site (make docs). Nothing is fetched: themes, fonts and the search index are all local."""

from __future__ import annotations

import re
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
nitpicky = True

myst_heading_anchors = 3
# A block that does not run here says so behind its language: ```sh notest: needs Docker
REASON = r"(?m)^(```\w+) notest: .*$"
LINK_TO_FILE = re.compile(r"\[(?P<text>(?:[^\]`]|`[^`]*`)+)\]\((?P<path>\.\.?/[^)#\s]+)(?:#[^)\s]+)?\)")
PAGE = re.compile(r"\]\(([\w/-]+)\.md\)")
CONTENTS = "\n\n```{{toctree}}\n:hidden:\n{options}\n\n{pages}\n```\n"

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
    """Make the generated pages before any page is read, and fit each page to the site."""
    app.connect("config-inited", lambda *_: write_pages(Path(app.srcdir)))
    app.connect("source-read", prepare)


def prepare(app: Sphinx, name: str, content: list[str]) -> None:
    """Remove from a page why its blocks do not run in the tests, and links out of the site; add its navigation."""
    text = re.sub(REASON, r"\1", content[0])
    folder = (Path(app.srcdir) / name).parent
    text = LINK_TO_FILE.sub(lambda link: link[0] if is_inside(app, folder / link["path"]) else link["text"], text)
    content[0] = text + navigation(name, text)


def is_inside(app: Sphinx, file: Path) -> bool:
    """Return whether a file is in the folder of the documentation."""
    return file.resolve().is_relative_to(app.srcdir)


def navigation(name: str, text: str) -> str:
    """Return the table of contents for the sidebar: the links of README by section, and the decisions."""
    if name == "decisions":
        return CONTENTS.format(options=":glob:", pages="adr/*")
    if name != root_doc:
        return ""
    sections = (section.partition("\n") for section in text.split("\n## ")[1:])
    return "".join(
        CONTENTS.format(options=f":caption: {title}", pages="\n".join(PAGE.findall(links)))
        for title, _, links in sections
        if PAGE.search(links)
    )
