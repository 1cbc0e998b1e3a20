"""A knowledge base that people look at, and a browser that they look with."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from urllib.parse import urlsplit

import httpx2
import pytest

from kb.access.keyring import FILE, KeyFile, Keyring, token_digest
from kb.api.rights import Limit
from tests.conftest import ALL_APPS, KEY
from tests.support.eventually import SECONDS, eventually
from tests.support.pdf import pdf
from tests.support.stores import TRIED

WAIT = 60
GONE = "does not belong to the document"
"""What the browser may say, instead of that it is stale, of an element whose page gives way to another at that moment."""
NOTE = """# Boat

Winter work on the **Wanderer**: the carburettor is cleaned each spring, before the moorings are renewed.

| part | due |
|---|---|
| impeller | May |
| anodes | June |

- [ ] ropes
- [x] flares

```
pump --prime 3
```
"""
MAIL = b"""From: Anna <anna@example.org>
To: kb@example.org
Subject: Moorings in May
Date: Mon, 04 May 2026 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

The harbour master renews the moorings on the ninth of May.
--b
Content-Type: text/csv; name=berths.csv
Content-Disposition: attachment; filename=berths.csv

berth,owner
14,Anna
15,Ben
--b--
"""
FILES = {
    "boat/lease.pdf": pdf("The lease of berth 14 ends in March 2028.", "Its deposit is three months of rent."),
    "boat/moorings.eml": MAIL,
    "boat/engine.csv": b"part,hours,price\nimpeller,200,34\nanode,400,12\nfilter,150,9\n",
    "boat/tides.py": b'"""Tides."""\n\ndef height(hour):\n    # metres above the chart\n    return 2.1 + hour / 6\n',
    "house/heating.md": b"---\ntags: [house]\n---\n# Heating\n\nThe boiler is bled in October. Its pressure stays near 1.5 bar.\n\n## Radiators\n\nStart on the ground floor.\n",
    "house/empty.pdf": pdf(),
}


WATCHED = {
    "vault": {
        "result": {
            "files": 120,
            "added": 2,
            "left_out": [
                {"reason": "kb doesn't read .mp3 files", "count": 3, "paths": ["songs/a.mp3", "songs/b.mp3"]},
                {"reason": "skipped by .gitignore", "count": 4},
            ],
        }
    },
    "scans": {
        "result": {
            "files": 31,
            "failed": 1,
            "failures": [{"path": "2026/a long name of a file that came from a scanner.pdf", "error": "it is damaged"}],
            "kept": ["14 of 44 documents would be deleted (14 in 2025/), so kb deleted none."],
        }
    },
    "disk": {"error": "The folder /media/ada/disk does not exist."},
    "laptop": None,
}
"""The watched folders, each with the report of its last round."""


def watch(engine, name, outcome=None):
    """Register a folder, watch it, and report a round; return the id of its watch."""
    id_ = sha256(name.encode()).hexdigest()[:32]
    place = {"prefix": f"{name}/", "machine": "one", "host": "lamp", "path": f"/home/ada/{name}"}
    engine.put("folders", json=place).raise_for_status()
    engine.put(f"folders/watches/{id_}", json={"prefix": f"{name}/", "machine": "one"}).raise_for_status()
    if outcome:
        engine.post(f"folders/watches/{id_}/report", json=outcome).raise_for_status()
    return id_


def fill(engine):
    """Add some of everything; return the ids of the documents by name."""
    ids = {}
    for path, content in FILES.items():
        form = {
            "files": {"file": (path.rpartition("/")[2], content)},
            "data": {"source_path": path, "tags": path.partition("/")[0]},
        }
        ids[path] = engine.post("jobs", params={"wait": 30}, **form).json()["document_id"]
    for title, text, tags in [
        ("Boat", NOTE, ["boat", "spring"]),
        ("Heating bill", "The bill of the heating came in May: 812 euros.", ["house", "bills"]),
    ]:
        note = {"title": title, "text": text, "tags": tags}
        ids[title] = engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    note = {"title": "Old lease", "text": "The lease that ended in 2024."}
    ids["binned"] = engine.post("jobs", params={"wait": 30}, json=note).json()["document_id"]
    engine.delete(f"documents/{ids['binned']}").raise_for_status()
    for number in range(12):
        note = {
            "title": f"Log of day {number + 1}",
            "text": f"Wind from the west, force {number % 7}. Sailed {number * 3} miles past the light.",
            "tags": ["log"],
        }
        engine.post("jobs", params={"wait": 30}, json=note)
    return ids


class Site:
    """The pages of a running server, and its API."""

    def __init__(self, server, key=None):
        self.url = server.url
        self.data = server.log.parent
        self.key = key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.engine = httpx2.Client(base_url=f"{server.url}/api/v1", headers=headers)
        self.ids = fill(self.engine)
        self.check_data()
        for name, outcome in WATCHED.items():
            watch(self.engine, name, outcome)

    def check_data(self):
        """Have something to show of what the doctor found."""
        self.engine.post("maintenance", json={"action": "check"})
        eventually("it has ended", lambda: self.engine.get("maintenance").json()["tasks"][0]["ended_at"])


@pytest.fixture(scope="session")
def site(start_server, tmp_path_factory):
    """Pages without a key; there are some all the same, from a time when one was set."""
    folder, backups = tmp_path_factory.mktemp("web"), str(tmp_path_factory.mktemp("backups"))
    keys = Keyring(KeyFile(folder / FILE))
    keys.make("reader", "read", Limit())
    _, token = keys.make("diary", "write", Limit(("diary",), "/home/ada/diary/"))
    keys.identify(token_digest(token))
    keys.flush()
    settings = {"KB_BACKUP_DIR": backups} if TRIED[-1] == "sqlite" else {}
    with start_server(folder, KB_APPS=ALL_APPS, **settings) as server:
        opened = Site(server)
        yield opened
        opened.engine.close()


@pytest.fixture(scope="session")
def guarded(start_server, tmp_path_factory):
    """Pages behind a key."""
    with start_server(
        tmp_path_factory.mktemp("guarded"), KB_API_KEY=KEY, KB_MCP_API_KEY="the-agents-key", KB_APPS="api,web"
    ) as server:
        yield server


@pytest.fixture
def reading():
    """Starts readers without script: `reading(address)`."""
    from tests.web.test_pages import Reader

    with ExitStack() as stack:

        def start(url):
            reader = Reader(url)
            stack.callback(reader.http.close)
            return reader

        yield start


@contextmanager
def chromium(*arguments):
    from selenium import webdriver

    program = shutil.which("chromedriver")
    assert program, "there is no chromedriver here; tests/docs/browser.sh brings it"  # selenium would download one
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900", *arguments):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(program))
    driver.set_script_timeout(SECONDS)  # a busy machine takes long for what takes a moment
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def one_browser():
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(one_browser):
    """A browser that knows nothing of the tests before; afterwards nothing was asked of others, and nothing went wrong."""
    one_browser.get("about:blank")
    one_browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    one_browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "local_storage"})
    one_browser.get_log("performance"), one_browser.get_log("browser")
    one_browser.messages, one_browser.expected = [], ()
    yield one_browser
    hosts = hosts_asked(one_browser)
    assert hosts <= {"127.0.0.1", "localhost"}, hosts
    wrong = [each["message"] for each in one_browser.get_log("browser") if each["level"] == "SEVERE"]
    assert [each for each in wrong if not any(word in each for word in one_browser.expected)] == []


def told(browser, method):
    """What the browser told of one kind since the test began."""
    browser.messages += [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [each["params"] for each in browser.messages if each["method"] == method]


def follow(browser, url):
    """Open a page that follows the state, and wait until it was told it."""
    kind = "Network.eventSourceMessageReceived"
    before = len(told(browser, kind))
    browser.get(url)
    eventually("the page is told the state", lambda: len(told(browser, kind)) > before)


def asked(browser):
    """The addresses that were asked for since the test began."""
    sent = [each["request"]["url"] for each in told(browser, "Network.requestWillBeSent")]
    return [parts for parts in map(urlsplit, sent) if parts.scheme in ("http", "https", "ws")]


def hosts_asked(browser):
    return {parts.hostname for parts in asked(browser)}


def places_asked(browser, url):
    """The paths that a server was asked for, and nobody else anything."""
    parts = asked(browser)
    assert {each.netloc for each in parts} == {urlsplit(url).netloc}
    return {each.path for each in parts}


def find(browser, selector, text=""):
    """What a person sees there, once it is there."""
    from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def shown(_):
        found = browser.find_elements(By.CSS_SELECTOR, selector)
        try:
            return [each for each in found if each.is_displayed() and text in each.text]
        except WebDriverException as error:
            if GONE in str(error):
                return []
            raise

    return WebDriverWait(browser, WAIT, ignored_exceptions=[StaleElementReferenceException]).until(shown)


def read(browser, selector):
    """The texts there at one moment; a page that follows the state may put others in their place at the next."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector
    )


def pages(ids):
    """Every page, by name."""
    return {
        "home": "",
        "search": "?q=when are the moorings renewed",
        "passages": "?q=boat moorings&by=passage&tag=boat",
        "wrong": f"?q=moorings&tag={'x' * 1000}",
        "nothing": "?q=xyzzy&mode=words",
        "documents": "documents",
        "note": f"d/{ids['Boat']}?chunk=0&q=carburettor",
        "pdf": f"d/{ids['boat/lease.pdf']}?chunk=0&q=lease",
        "mail": f"d/{ids['boat/moorings.eml']}",
        "table": f"d/{ids['boat/engine.csv']}",
        "code": f"d/{ids['boat/tides.py']}",
        "in-passages": f"d/{ids['house/heating.md']}?show=chunks",
        "binned": f"d/{ids['binned']}",
        "history": f"d/{ids['Heating bill']}/history",
        "version": f"d/{ids['Heating bill']}/history/1",
        "new": "new",
        "edit": f"d/{ids['Boat']}/edit",
        "add": "add",
        "jobs": "jobs",
        "bin": "bin",
        "help": "help/",
        "help-page": "help/agents",
        "help-search": "help/?q=backup",
        "overview": "overview",
        "server": "server",
        "map": "map?by=tag",
        "settings": "settings",
        "tags": "tags",
        "tag": "tags?edit=boat",
        "duplicates": "duplicates",
        "near": "duplicates?kind=near",
        "compare": f"d/{ids['Boat']}/compare/{ids['Heating bill']}",
        "keys": "keys",
        "folders": "folders",
        "backups": "backups",
        "doctor": "doctor",
        "connect": "connect",
        "sign-in": "sign-in",
        "missing": "nowhere",
    }


@pytest.fixture(name="read")
def start_reader():
    """Starts readers without scripts: `read(address)`."""
    from tests.web.test_pages import Reader

    readers = []

    def start(url):
        readers.append(Reader(url))
        return readers[-1]

    yield start
    for reader in readers:
        reader.http.close()
