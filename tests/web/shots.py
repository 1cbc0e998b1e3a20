"""Pictures of every page at three widths and both themes:  python -m tests.web.shots URL FOLDER"""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path

from PIL import Image

from tests.support.eventually import eventually
from tests.support.pdf import pdf
from tests.web.conftest import chromium, pages

WIDTHS = (390, 1280, 2560)
NARROWEST = 360
DRAWN = "return document.querySelector('.looks img').naturalWidth > 0"


def theme(browser, name):
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # half-changed colours have less contrast
    features = [{"name": "prefers-color-scheme", "value": name}, still]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")  # it is drawn


def width(browser, pixels, height=None):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {
            "width": pixels,
            "height": height or (800 if pixels < 800 else 900 if pixels < 2000 else 1200),
            "deviceScaleFactor": 1,
            "mobile": pixels < 800,
        },
    )


def shoot(browser, file):
    file.write_bytes(b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))


def shoot_small(browser, file):
    """A picture with 128 colours, which takes a third of the space."""
    shoot(browser, file)
    with Image.open(file) as image:
        image.convert("RGB").quantize(128).save(file, optimize=True)


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
        shoot_small(browser, folder / f"search-{look}.png")
    theme(browser, "light")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": 920})
    browser.get(f"{site.url}/{passage_of_lease(site.engine)}")
    eventually("the page is drawn", lambda: browser.execute_script(DRAWN))
    browser.execute_script("scrollTo(0, 0)")
    shoot_small(browser, folder / "document.png")
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"height": 600})
    browser.get(f"{site.url}/d/{changed_note(site.engine)}/history")
    shoot_small(browser, folder / "history.png")
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": False})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    theme(browser, "")


LEASE = """Lease of the flat in 12 Harbour Street
1. Parties
The lease is between Ms Weber, the landlord, and Ada Byron, the tenant.
Both parties have received a signed copy of this agreement.
2. Tenancy
The tenancy begins on 1 April 2025 and ends on 31 March 2028.
It continues from month to month if neither party gives notice.
The period of notice for both parties is three months.
The tenant may sublet one room after asking the landlord in writing.
3. Rent
The rent is 1,140 euros per month, due on the third working day.
Heating and water cost another 160 euros per month in advance.
The landlord sends a statement of these costs once a year, in May.
The rent does not rise before 1 April 2026.
4. Deposit
The deposit is three months of rent, paid in three equal parts.
The landlord keeps it in a separate savings account.
She returns it with interest six months after the end of the tenancy.
She may deduct the cost of repairs that the tenant has agreed to.
5. Keys
The tenant receives two keys to the flat and one to the cellar.
A lost key must be reported within a week.
6. Repairs
The landlord repairs the heating, the windows and the roof."""
"""A page with several passages."""


def passage_of_lease(engine):
    """Add the lease; return the address of its passage about the deposit."""
    text = LEASE.replace("\n", ") Tj 0 -22 Td (")  # each line is shown by an operator of its own
    form = {"files": {"file": ("Lease.pdf", pdf(text))}, "data": {"tags": "flat", "source_path": "flat/Lease.pdf"}}
    lease = engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    query = {"query": "savings account of the deposit", "document_id": lease}
    index = engine.post("search", json=query).json()["results"][0]["index"]
    return f"d/{lease}?chunk={index}&q=deposit"


def changed_note(engine):
    """Add a note that was changed twice, with reasons; return its id."""
    note = {"title": "Mooring fees", "text": "The mooring costs 480 euros per year."}
    added = engine.post("jobs", params={"wait": 30}, json=note, headers={"User-Agent": "kb/3.0.0"})
    changed = added.json()["document_id"]
    for text, why in [
        ("The mooring costs 520 euros per year.", "the invoice of March"),
        ("The mooring costs 520 euros per year, electricity included.", "asked the harbour master"),
    ]:
        change = {"params": {"why": why}, "json": {"text": text}, "headers": {"User-Agent": "kb/3.0.0"}}
        engine.patch(f"notes/{changed}", **change).raise_for_status()
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
