"""How the pages look, to the eye and to what reads them aloud; what they weigh and how fast they are."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import httpx2
import pytest

from tests.conftest import ROOT
from tests.web.conftest import find, pages
from tests.web.shots import WIDTHS, shoot_all, theme, width

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
AXE = ROOT / "tests/web/node_modules/axe-core/axe.min.js"
LONGEST_PAGE = 100_000
LONGEST_SCRIPT = 40_000
REFUSED = ("401", "404", "410")


def test_every_page_serves_those_who_do_not_see_it_in_both_themes(browser, site):
    browser.expected = REFUSED
    assert AXE.is_file(), "make test-web brings it"
    script = AXE.read_text()
    wrong = {}
    for name, place in pages(site.ids).items():
        for look in ("light", "dark"):
            theme(browser, look)
            browser.get(f"{site.url}/{place}")
            find(browser, "main")
            browser.execute_script(script)
            found = browser.execute_async_script("axe.run().then(arguments[0])")["violations"]
            wrong |= {(name, look, each["id"]): [node["html"][:150] for node in each["nodes"]] for each in found}
    theme(browser, "")
    assert wrong == {}


def test_no_page_is_wider_than_the_window_and_nothing_moves_while_it_loads(browser, site):
    browser.expected = REFUSED
    wide, moved = {}, {}
    for pixels in WIDTHS:
        width(browser, pixels)
        for name, place in pages(site.ids).items():
            browser.get(f"{site.url}/{place}")
            find(browser, "main")
            overflow = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
            wide |= {(name, pixels): overflow} if overflow > 0 else {}
            shift = browser.execute_async_script(
                """new PerformanceObserver((list) => {}).observe({type: "layout-shift", buffered: true});
                const done = arguments[0]; let sum = 0;
                new PerformanceObserver((list) => { for (const each of list.getEntries()) sum += each.value; })
                  .observe({type: "layout-shift", buffered: true});
                setTimeout(() => done(sum), 60);"""
            )
            moved |= {(name, pixels): shift} if shift > 0.05 else {}
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide == {}
    assert moved == {}


def test_pictures_of_every_page_are_kept(browser, site):
    browser.expected = REFUSED
    folder = Path(os.environ.get("KB_SHOTS", ROOT / "build" / "pages"))
    shoot_all(browser, site.url, site.ids, folder)
    assert len(list(folder.glob("*.png"))) >= len(pages(site.ids)) * len(WIDTHS) * 2


def test_a_page_weighs_little(site):
    script, style = (httpx2.get(f"{site.url}/static/{name}").content for name in ("app.js", "style.css"))
    assert len(gzip.compress(script)) <= LONGEST_SCRIPT
    for place in pages(site.ids).values():
        page = httpx2.get(f"{site.url}/{place}", headers={"Accept": "text/html"}).content
        assert len(page) + len(script) + len(style) <= LONGEST_PAGE, place


def test_how_long_results_take_is_told(browser, site):
    """The time from the key to the picture; it is told, and fails nothing."""
    browser.get(site.url)
    find(browser, "#q")
    times = browser.execute_async_script(
        """const done = arguments[0], field = document.querySelector("#q"), times = [];
        const words = ["boat", "moorings", "heating", "tide", "wind", "carburettor", "lease", "boiler"];
        const next = () => {
          if (times.length === 40) return done(times);
          const begun = performance.now();
          addEventListener("kb:shown", () => requestAnimationFrame(() => { times.push(performance.now() - begun); next(); }), {once: true});
          field.value = words[times.length % words.length] + " " + times.length;
          field.dispatchEvent(new Event("input", {bubbles: true}));
        }; next();"""
    )
    times.sort()
    assert len(times) == 40
    print(json.dumps({"p50_ms": round(times[20]), "p95_ms": round(times[37])}))
