"""Pictures of every page at three widths and both themes:  python -m tests.web.shots URL FOLDER"""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path

from tests.support.eventually import eventually
from tests.web.conftest import chromium, pages

WIDTHS = (360, 1280, 2560)
DRAWN = "return document.querySelector('.looks img').naturalWidth > 0"


def theme(browser, name):
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # what is half way to a colour has less contrast
    features = [{"name": "prefers-color-scheme", "value": name}, still]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")  # it is drawn


def width(browser, pixels):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": pixels,
            "height": 800 if pixels < 800 else 900 if pixels < 2000 else 1200,
            "deviceScaleFactor": 1,
            "mobile": pixels < 800,
        },
    )


def shoot(browser, file):
    file.write_bytes(b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))


def shoot_all(browser, url, ids, folder, widths=WIDTHS):
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in pages(ids).items():
        for each in widths:
            width(browser, each)
            for look in ("light", "dark"):
                theme(browser, look)
                browser.get(f"{url}/{place}")
                shoot(browser, folder / f"{name}-{each}-{look}.png")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    theme(browser, "")


def shoot_docs(browser, site, folder):
    """The pictures of the README and the docs."""
    folder.mkdir(parents=True, exist_ok=True)
    size = {"width": 1100, "height": 720, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    for look in ("light", "dark"):
        theme(browser, look)
        browser.get(f"{site.url}/?q=when are the moorings renewed&mode=")
        shoot(browser, folder / f"search-{look}.png")
    theme(browser, "light")
    browser.get(f"{site.url}/d/{site.ids['boat/lease.pdf']}?chunk=1&q=deposit")
    eventually("the page is drawn", lambda: browser.execute_script(DRAWN))
    shoot(browser, folder / "document.png")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": 420})
    browser.get(f"{site.url}/d/{changed_note(site.engine)}/history")
    shoot(browser, folder / "history.png")
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": False})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    theme(browser, "")


def changed_note(engine):
    """Add a note that was changed twice, with reasons; return its id."""
    note = {"title": "Mooring fees", "text": "The mooring costs 480 euros per year."}
    changed = engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    for text, why in [
        ("The mooring costs 520 euros per year.", "the invoice of March"),
        ("The mooring costs 520 euros per year, electricity included.", "asked the harbour master"),
    ]:
        engine.patch(f"notes/{changed}", params={"why": why}, json={"text": text}).raise_for_status()
    return changed


def ids_at(url):
    """The ids that the pages of a server have which `fill` has filled."""
    import httpx2

    with httpx2.Client(base_url=f"{url}/api/v1") as engine:
        rows = engine.get("documents", params={"limit": 500}).json()["documents"]
        [binned, *_] = engine.get("bin").json()["documents"]
    return {each["source_path"] or each["title"]: each["id"] for each in rows} | {"binned": binned["id"]}


if __name__ == "__main__":
    with chromium("--hide-scrollbars") as driver:
        shoot_all(driver, sys.argv[1], ids_at(sys.argv[1]), Path(sys.argv[2]))
