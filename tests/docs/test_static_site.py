"""The documentation as files, for readers who have not installed kb: make site."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import ROOT


class Links(HTMLParser):
    """What a page points to, and the places in it that others can point to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.targets += [given[name] for name in ("href", "src") if given.get(name)]
        self.ids.add(given.get("id"))


@pytest.mark.slow
def test_the_site_has_every_page_and_no_link_in_it_is_broken(tmp_path):
    subprocess.run([sys.executable, ROOT / "packaging/static_site.py", tmp_path], check=True)
    pages = {page: Links(page) for page in tmp_path.rglob("*.html")}
    written = {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    shown = {page.relative_to(tmp_path).with_suffix("") for page in pages}
    assert written - shown == {Path("README")}, "which is index.html"
    for page, links in pages.items():
        for target in map(urlsplit, links.targets):
            if not target.scheme:
                file = (page.parent / target.path).resolve() if target.path else page
                assert file.is_file(), (page.name, target.path)
                assert not target.fragment or target.fragment in pages[file].ids, (page.name, target)
