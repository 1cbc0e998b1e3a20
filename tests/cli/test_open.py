"""Opening results by their number, and results that are longer than the terminal."""

import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.pdf import pdf


@pytest.fixture
def programs(outside):
    """What opens files here: each program only notes what it was given."""
    folder = outside.folder / "bin"
    folder.mkdir()
    for name in ("xdg-open", "okular", "myeditor", "mypager"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $@" >> {outside.folder}/opened\n')
    (folder / "xdg-mime").write_text("#!/bin/sh\necho org.kde.okular.desktop\n")
    for program in folder.iterdir():
        program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def opened(kb):
    file = Path(kb.folder) / "opened"
    return eventually("it was opened", lambda: file.read_text() if file.exists() else "", bool)


def test_a_result_is_opened_by_its_number_at_its_line_or_page(kb, tag, programs):
    folder = Path(kb.folder) / "papers"
    folder.mkdir()
    (folder / "a.md").write_text(f"# Mooring\n\nA first line.\n\nThe anchor chain {tag} is here.\n")
    (folder / "b.pdf").write_bytes(pdf("nothing", f"The anchor chain {tag} of page two"))
    kb("add", "papers", "--tags", tag, "--wait")
    assert "does not know your last search" in kb("open", "-n", "1").stderr
    _, shown = kb.in_terminal("search", "anchor chain", tag, "--tags", tag)
    first_is_pdf = shown.index("b.pdf") < shown.index("a.md")
    numbers = {"pdf": "1" if first_is_pdf else "2", "md": "2" if first_is_pdf else "1"}
    assert kb("open", "-n", numbers["md"], env=programs | {"EDITOR": "myeditor"}).returncode == 0
    assert opened(kb) == f"myeditor +5 {folder}/a.md\n"
    assert kb("open", "-n", numbers["pdf"], env=programs).returncode == 0
    eventually("it was opened", lambda: opened(kb), lambda said: said.endswith(f"okular --page 2 {folder}/b.pdf\n"))
    more = kb("open", "-n", "99")
    assert (more.returncode, "had only" in more.stderr) == (2, True)
    assert kb("open").returncode == 2


def test_what_came_inside_another_file_opens_that_one(kb, tag, programs):
    folder = Path(kb.folder) / "papers"
    folder.mkdir()
    with zipfile.ZipFile(folder / "notes.zip", "w") as archive:
        archive.writestr("deep/one.md", f"# One {tag}\n")
    mail = EmailMessage()
    mail["Subject"] = f"Lease {tag}"
    mail.set_content("See the lease.")
    mail.add_attachment(f"The rent {tag} is due.".encode(), maintype="text", subtype="plain", filename="lease.txt")
    (folder / "mail.eml").write_bytes(bytes(mail))
    kb("add", "papers/notes.zip", "--wait")
    kb("add", "papers/mail.eml", "--wait")
    kb("jobs", "--follow")
    for path, whole in (("notes.zip/deep/one.md", "notes.zip"), ("mail.eml#lease.txt", "mail.eml")):
        [document] = kb.json("list", "--path", f"{folder}/{path}")["documents"]
        ended = kb("open", document["id"], env=programs | {"EDITOR": "myeditor"})
        assert ended.returncode == 0
        assert ended.stderr.startswith(f"kb: {folder}/{path} is inside {folder}/{whole}, so kb opens that; 'kb get ")
        assert opened(kb).endswith(f"xdg-open {folder}/{whole}\n")
    (folder / "mail.eml").chmod(0o755)
    ended = kb("open", document["id"], env=programs)
    assert ended.stderr == f"kb: {folder}/mail.eml is a program; kb does not start programs.\n"


def test_what_has_no_room_in_the_terminal_goes_to_the_pager(kb, tag, programs):
    for number in range(6):
        kb.note(f"Ropes {number} {tag}", "--tags", tag)
    pager = programs | {"PAGER": "mypager -x"}
    _, shown = kb.in_terminal("search", "ropes", tag, "--tags", tag, env=pager | {"LINES": "50"})
    assert "Ropes" in shown
    _, shown = kb.in_terminal("search", "ropes", tag, "--tags", tag, env=pager | {"LINES": "5"})
    assert "Ropes" not in shown
    assert opened(kb) == "mypager -x\n"
    assert "Ropes" in kb("search", "ropes", tag, "--tags", tag, env=pager).stdout


def test_an_interrupt_in_the_pager_is_the_pagers_own(kb, tag, programs):
    for number in range(3):
        kb.note(f"Ropes {number} {tag}", "--tags", tag)
    pager = kb.folder / "bin/mypager"
    pager.write_text(f"#!/bin/sh\nkill -INT $PPID; sleep 0.5; echo survived > {kb.folder}/opened\n")
    env = programs | {"LINES": "2"}
    kb.in_terminal("search", "ropes", tag, "--tags", tag, env=env | {"PAGER": "mypager"})
    assert opened(kb) == "survived\n"
    for wrong in (" ", "less 'x"):
        _, shown = kb.in_terminal("search", "ropes", tag, "--tags", tag, env=env | {"PAGER": wrong})
        assert "Ropes" in shown
