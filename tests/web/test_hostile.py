"""Documents that want to be more than text."""

from __future__ import annotations

import base64

import pytest

from tests.conftest import ALL_APPS
from tests.support.pdf import pdf
from tests.web.conftest import find

pytestmark = [pytest.mark.web, pytest.mark.filterwarnings("default")]
RUN = "window.hurt=(window.hurt||0)+1"
SCRIPTS = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f'"><svg onload={RUN}>',
    f"'-{RUN}-'",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<math><mi xlink:href='javascript:{RUN}'>x</mi></math>",
    f"{{{{ ''.__class__ }}}} {{% raw %}} <a href=javascript:{RUN}>x</a>",
    f"<base href=//evil.example/><style>*{{background:url(//evil.example)}}</style><b onclick={RUN}>",
]
LINKS = [
    f"[click](javascript:{RUN})",
    f"[click](JaVaScRiPt:{RUN})",
    f"[click](data:text/html,<script>{RUN}</script>)",
    f"[click](vbscript:{RUN})",
    "![](http://evil.example/beacon.png)",
    f"<javascript:{RUN}>",
    f'[x]: javascript:{RUN}\n\n[click][x] <img src="http://evil.example/x.png">',
    f'[a](# "onmouseover={RUN}") ~~~<script>{RUN}</script>~~~',
    f"| a | b |\n|---|---|\n| <script>{RUN}</script> | <img src=x onerror={RUN}> |",
    f'```html" onload={RUN}\n<script>{RUN}</script>\n```',
]
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script>{RUN}</script></svg>'.encode()
PAGE = f"<!doctype html><title><script>{RUN}</script></title><body onload={RUN}><script>{RUN}</script><h1>&lt;script&gt;{RUN}&lt;/script&gt;</h1>".encode()
MAIL = (
    f'From: "<script>{RUN}</script>" <a@example.org>\nSubject: =?utf-8?b?{base64.b64encode(SCRIPTS[1].encode()).decode()}?=\n'
    f"To: =?utf-8?q?=3Cscript=3E{RUN}=3C/script=3E?= <b@example.org>\nContent-Type: text/html\n\n<body onload={RUN}><script>{RUN}</script>text\n"
).encode()
FILES = {
    "drawing.svg": SVG,
    "page.html": PAGE,
    "mail.eml": MAIL,
    f"<img src=x onerror={RUN}>.txt": b"A file with a name.",
    "evil\u202efdp.exe.txt": "A name that turns. \u202egninrut \u2066and a text".encode(),
    "polyglot.pdf": b"%PDF-1.4\n<script>" + RUN.encode() + b"</script>\n" + PAGE,
    "table.csv": f'a,b\n<script>{RUN}</script>,=HYPERLINK("javascript:{RUN}")\n'.encode(),
    "code.js": f"</td></table><script>{RUN}</script>\n".encode() * 3,
    "data.json": f'{{"</script><script>{RUN}</script>": "<img src=x onerror={RUN}>"}}'.encode(),
    "front.md": f'---\ntitle: "<script>{RUN}</script>"\ntags: ["<img src=x onerror={RUN}>"]\ndate: "<script>{RUN}</script>"\n---\n# <svg onload={RUN}>\n'.encode(),
    "feed.xml": f'<?xml version="1.0"?><?xml-stylesheet href="javascript:{RUN}"?><r xmlns:h="http://www.w3.org/1999/xhtml"><h:script>{RUN}</h:script>text</r>'.encode(),
    "title.html": b"<title>" + b"long " * 200_000 + b"</title><p>A title of a megabyte.",
    "headings.md": ("# " + "w" * 100_000 + "\n\ntext\n\n").encode() * 3,
    "wide.csv": (",".join(f"column {number}" for number in range(500)) + "\n" + ",".join("1" * 500) + "\n").encode(),
    "zalgo.txt": ("Z" + "\u0300\u0316\u0489" * 300 + " text\n").encode() * 30,
    "controls.txt": "bell \x07 escape \x1b[31m null- feed \x0c line \u2028 paragraph \u2029 end\n".encode() * 5,
    "nested.md": ("> " * 300 + "deep\n\n" + "- " * 200 + "deep\n").encode(),
    "frames.html": f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'><object data=//evil.example></object><embed src=//evil.example><iframe src='javascript:parent.{RUN}'></iframe><form action=//evil.example><button formaction='javascript:{RUN}'>words</button></form>".encode(),
    "turned.md": f"# \u202e\u2067{'txet ' * 40}\u2066<script>{RUN}</script>\n\nwords that \u202eturn and never turn back\n".encode(),
    "box.mbox": b"From a@example.org Mon May  4 10:00:00 2026\n"
    + MAIL
    + b"\nFrom b@example.org Tue May  5 10:00:00 2026\n"
    + MAIL,
    "script.pdf": pdf(f"Words and {RUN}").replace(
        b"/Type /Catalog", b"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >>"
    ),
    "utf7.html": b"+ADw-script+AD4-" + RUN.encode() + b"+ADw-/script+AD4- words",
}


@pytest.fixture(scope="module")
def hostile(start_server, tmp_path_factory):
    """A knowledge base with hostile documents alone, some of which are refused."""
    import httpx2

    with (
        start_server(tmp_path_factory.mktemp("hostile"), KB_APPS=ALL_APPS) as server,
        httpx2.Client(base_url=f"{server.url}/api/v1") as engine,
    ):
        for number, text in enumerate(SCRIPTS):
            note = {
                "text": f"Words {number} {text}",
                "title": f"{text} title"[:500],
                "tags": [text.replace(",", "")[:200]],
                "source_path": f"notes/{text}",
            }
            assert engine.post("jobs", params={"wait": 60}, json=note).json()["document_id"]
        for number, text in enumerate(LINKS):
            assert engine.post("jobs", params={"wait": 60}, json={"text": f"Words {number}\n\n{text}"}).json()[
                "document_id"
            ]
        for number, (name, content) in enumerate(FILES.items()):
            engine.post(
                "jobs",
                params={"wait": 60},
                files={"file": (f"{number}.{name.rpartition('.')[2]}", content)},
                data={"source_path": f"in/{name}"},
            )
        yield server, [each["id"] for each in engine.get("documents", params={"limit": 200}).json()["documents"]]


def test_nothing_of_a_document_is_executed_and_every_page_holds_together(browser, hostile):
    server, ids = hostile
    assert len(SCRIPTS) + len(LINKS) + len(FILES) >= 40
    assert len(ids) >= 36
    places = [
        "",
        "documents",
        "jobs",
        "overview",
        "bin",
        "map",
        "keys",
        "backups",
        "doctor",
        "?q=words",
        "?q=<script>window.hurt=1</script>",
        "?q=words&by=passage",
    ]
    places += [
        f"documents?path={SCRIPTS[0]}",
        f"documents?type={SCRIPTS[2]}",
        f"new?title={SCRIPTS[5]}&text={SCRIPTS[5]}",
    ]
    for document in ids:
        places += [
            f"d/{document}",
            f"d/{document}?chunk=0&q=words",
            f"d/{document}?show=chunks",
            f"d/{document}/history",
            f"d/{document}/history/1",
        ]
    for place in places:
        browser.get(f"{server.url}/{place}")
        assert browser.execute_script("return window.hurt") is None, place
        assert (
            browser.execute_script(
                'return document.querySelectorAll(\'iframe, object, embed, base, main script, main style, main img:not([src*=".png"], [src*="/thumbnail?"], [src$="/picture"])\').length'
            )
            == 0
        ), place
        assert browser.execute_script(
            "return [...document.querySelectorAll('a')].every((each) => /^(https?|mailto):/.test(each.href) || each.closest('.bookmarklet'))"
        ), place
        overflow = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, (place, overflow)
        assert len(browser.title) < 700, place


def test_a_preview_is_as_harmless_as_the_page(browser, hostile):
    server, _ = hostile
    browser.get(f"{server.url}/new")
    text = "\n\n".join(SCRIPTS + LINKS)
    browser.execute_script(
        "const t = document.querySelector('textarea'); t.value = arguments[0]; t.dispatchEvent(new Event('input', {bubbles: true}))",
        text,
    )
    assert find(browser, "#preview p")
    assert browser.execute_script("return window.hurt") is None
    assert (
        browser.execute_script(
            "return document.querySelectorAll('#preview script, #preview img, #preview [onerror]').length"
        )
        == 0
    )
    browser.execute_script("localStorage.clear()")


def test_an_original_is_only_ever_a_download(hostile):
    import httpx2

    server, ids = hostile
    kept = 0
    for document in ids:
        answer = httpx2.get(f"{server.url}/d/{document}/file")
        if answer.status_code == 200:
            kept += 1
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment;")
            assert answer.headers["content-security-policy"].startswith("sandbox")
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert kept >= 10
