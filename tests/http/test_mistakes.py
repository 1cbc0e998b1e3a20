"""What an agent does by mistake, or because a document told it to, is taken back with one command."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime
from email.message import EmailMessage

import httpx2
import pytest

from kb_cli.main import run
from tests.conftest import KEY, MCP_KEY
from tests.support.eventually import eventually

AGENT = "the-agents-own-key"
PATH = "/plans/harbour.md"


def mail():
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "Invoices"
    message.set_content("The invoices of the harbour.")
    message.add_attachment("Ten tons of coal.", filename="coal.txt")
    return message.as_bytes()


class Base:
    """A knowledge base with a few documents, as its user or an agent changes it."""

    def __init__(self, url):
        self.url, self.client = f"{url}/api/v1", None
        self.use(KEY)
        note = self.note
        self.lamp, self.ship = (
            note("The lamp is lit at six.", tags="lamp"),
            note("The ship leaves at dawn.", tags="sea"),
        )
        self.plan = note("Plan of the harbour: two quays.", tags="sea,plan", source_path=PATH)
        self.gone = note("A draft that was thrown away.", tags="draft")
        self.file = self.upload("coal.md", b"# Coal\n\nCoal comes by train.\n", source_path="/coal.md")
        self.mail = self.upload("invoices.eml", mail(), source_path="/invoices.eml")
        self.notes = [self.lamp, self.ship, self.plan]
        self.change("PATCH", f"notes/{self.ship}", json={"text": "The ship leaves at noon."})
        self.change("DELETE", f"documents/{self.gone}")

    def use(self, key):
        if self.client:
            self.client.close()
        self.key = key
        self.client = httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"})

    def change(self, method, path, **options):
        answer = self.client.request(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json()

    def get(self, path, **params):
        return self.change("GET", path, params=params)

    def note(self, text, *, tags="", source_path=None):
        body = {"text": text, "tags": [tag for tag in tags.split(",") if tag], "source_path": source_path}
        return self.change("POST", "jobs?wait=60", json=body)["document_id"]

    def upload(self, filename, content, **fields):
        files = {"file": (filename, io.BytesIO(content))}
        job = self.change("POST", "jobs?wait=60", data=fields, files=files)
        eventually("attachments are in", lambda: not self.get("status")["queue"]["queued"])
        return job["document_id"]

    def update(self, id_, text):
        return self.change("PATCH", f"notes/{id_}", json={"text": text})

    def retag(self, id_, **change):
        return self.change("PATCH", f"documents/{id_}/tags", json=change)

    def delete(self, id_):
        return self.change("DELETE", f"documents/{id_}")

    @property
    def ids(self):
        return [document["id"] for document in self.get("documents")["documents"]]

    def name(self):
        """What history calls the key that is used."""
        id_ = self.note(f"Whose {self.key} is")
        name = self.get(f"documents/{id_}/history")["versions"][0]["by"]
        self.change("DELETE", f"documents/{id_}", params={"purge": True})
        return name

    def state(self):
        """All that can be seen of the documents, but when they were changed."""
        documents = [self.get(f"documents/{id_}") for id_ in self.ids]
        seen = {
            document["id"]: [document[name] for name in ("title", "tags", "source_path", "doc_type", "content_hash")]
            + ["".join(chunk["text"] for chunk in document["chunks"])]
            for document in documents
        }
        found = [
            {result["document_id"] for result in self.change("POST", "search", json={"query": query})["results"]}
            for query in ("lamp at six", "coal")
        ]
        files = [self.client.get(f"documents/{id_}/file").content for id_ in self.ids if seen[id_][3] != "note"]
        return seen, found, files, self.get("tags")


@pytest.fixture(scope="module")
def base(start_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "keys").write_text(f"{AGENT}\n")
    with start_server(folder, KB_API_KEY=KEY, KB_MCP_API_KEY=MCP_KEY, KB_API_KEY_FILE=str(folder / "keys")) as server:
        base = Base(server.url)
        yield base
        base.client.close()


def overwrite(base):
    base.update(base.lamp, "Summary: done.")
    return ["revert", base.lamp, 1]


def overwrite_the_wrong_note(base):
    base.update(base.plan, "The lamp is lit at seven.")
    return ["revert", base.plan, 1]


def blank(base):
    base.update(base.lamp, ".")
    return ["undo", "--yes"]


def edit_again_and_again(base):
    for number in range(5):
        base.update(base.lamp, f"Edit {number}")
    return ["undo", "--yes"]


def delete_a_note(base):
    base.delete(base.ship)
    return ["restore", base.ship]


def delete_a_file(base):
    base.delete(base.file)
    return ["restore", base.file]


def delete_a_mail_with_what_it_brought(base):
    base.delete(base.mail)
    return ["restore", base.mail]


def delete_all_as_a_document_said(base):
    for id_ in base.ids:
        base.client.delete(f"documents/{id_}")
    return ["undo", "--yes"]


def tag_all(base):
    for id_ in base.ids:
        base.retag(id_, add=["reviewed", "done"])
    return ["undo", "--yes"]


def untag_all(base):
    for id_ in base.ids:
        base.retag(id_, remove=["sea", "lamp", "plan"])
    return ["undo", "--yes"]


def upload_another_file_in_its_place(base):
    base.upload("coal.md", b"# Wood\n\nWood comes by ship.\n", source_path="/coal.md", title="Wood", tags="wood")
    return ["undo", "--yes"]


def send_another_note_in_its_place(base):
    base.note("Nothing is planned.", tags="none", source_path=PATH)
    return ["undo", "--yes"]


def flood(base):
    for number in range(10):
        base.note(f"The lamp is a lie {number}", tags="spam")
    return ["undo", "--yes"]


def delete_and_put_another_in_its_place(base):
    base.delete(base.plan)
    base.note("Plan: none.", source_path=PATH)
    return ["undo", "--yes"]


def delete_and_add_again(base):
    base.delete(base.lamp)
    base.note("The lamp is lit at six.", tags="lamp")
    return ["undo", "--yes"]


def change_retag_and_delete(base):
    base.update(base.plan, "Other words")
    base.retag(base.plan, add=["x"], remove=["plan"])
    base.delete(base.plan)
    return ["undo", "--yes"]


def revert_too_far(base):
    base.change("POST", f"documents/{base.ship}/revert", json={"version": 1})
    return ["undo", "--yes"]


def restore_what_was_thrown_away(base):
    base.change("POST", f"documents/{base.gone}/restore")
    return ["delete", base.gone, "--yes"]


def undo_good_work(base):
    since = moment()
    note = base.note("Good work", tags="work")
    base.expected = base.state()
    base.before = moment()
    base.change("POST", "undo", json={"since": since})
    assert note not in base.ids
    return ["undo", "--yes"]


def wreck_while_the_user_works(base):
    base.use(AGENT)
    name = base.name()
    base.before = moment()
    base.delete(base.lamp)
    base.update(base.ship, "Sunk.")
    base.retag(base.file, add=["sunk"])
    base.use(KEY)
    base.retag(base.plan, add=["by hand"])
    base.expected[0][base.plan][1] = sorted([*base.expected[0][base.plan][1], "by hand"])
    base.expected = (*base.expected[:3], base.expected[3] | {"tags": None})
    return ["undo", "--yes", "--key", name]


MISTAKES = (
    overwrite,
    overwrite_the_wrong_note,
    blank,
    edit_again_and_again,
    delete_a_note,
    delete_a_file,
    delete_a_mail_with_what_it_brought,
    delete_all_as_a_document_said,
    tag_all,
    untag_all,
    upload_another_file_in_its_place,
    send_another_note_in_its_place,
    flood,
    delete_and_put_another_in_its_place,
    delete_and_add_again,
    change_retag_and_delete,
    revert_too_far,
    restore_what_was_thrown_away,
    undo_good_work,
    wreck_while_the_user_works,
)


def moment():
    time.sleep(0.002)  # a change is stamped to the millisecond
    now = datetime.now(UTC).isoformat()
    time.sleep(0.002)
    return now


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_it_is_taken_back_with_one_command(base, monkeypatch, mistake):
    base.expected, base.before = base.state(), moment()
    command = [str(word) for word in mistake(base)]
    for name, value in {"KB_ENGINE_URL": base.url.removesuffix("/api/v1"), "KB_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    wrong = base.state()
    assert wrong != base.expected
    assert run([*command, *(["--since", base.before] if command[0] == "undo" else [])]) == 0
    seen, found, files, tags = base.state()
    assert (seen, found, files) == base.expected[:3]
    assert base.expected[3]["tags"] in (None, tags["tags"])


def test_there_are_twenty_of_them():
    assert len(MISTAKES) == 20
