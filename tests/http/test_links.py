"""The links of notes and Markdown files, over HTTP."""

from __future__ import annotations

import io

import pytest

from kb.api.errors import NotFound
from tests.http.conftest import added, finished
from tests.support.eventually import eventually_async


async def leads(api, document_id):
    """Where each link of a document leads."""
    return {link["target"]: link["document_id"] for link in (await api.links(document_id))["links"]}


async def linking(api, document_id):
    """The documents that link to one, with the line of the link."""
    reply = await api.links(document_id)
    assert reply["linked_from_count"] == len(reply["linked_from"])
    return {each["document_id"]: each["passage"] for each in reply["linked_from"]}


async def file(api, path, text):
    """The id of a file with a text."""
    job = await finished(api, await api.add_file(path.rpartition("/")[2], io.BytesIO(text.encode()), source_path=path))
    assert job["document_id"], job
    return job["document_id"]


async def test_links_lead_both_ways(api, word):
    kiln = await file(api, f"/{word}/Projects/Kiln.md", f"# The kiln {word}\n\nSee [[Keys#Shed|the keys]].\n")
    keys = await file(
        api,
        f"/{word}/Areas/Keys.md",
        "---\naliases: [Schlüssel]\n---\n# Keys\n\nIn ![plan](../Projects/Kiln.md) `[[Kiln]]`.\n",
    )
    note = await added(api, f"First.\n\nA note on [[Schlüssel]], [[Nothing {word}]] and kb://documents/{kiln} again.\n")
    assert await leads(api, kiln) == {"Keys#Shed": keys}
    assert await leads(api, keys) == {"../Projects/Kiln.md": kiln}
    assert await leads(api, note) == {"Schlüssel": keys, f"Nothing {word}": None, f"kb://documents/{kiln}": kiln}
    line = f"A note on [[Schlüssel]], [[Nothing {word}]] and kb://documents/{kiln} again."
    assert await linking(api, keys) == {kiln: "See [[Keys#Shed|the keys]].", note: line}
    assert await linking(api, kiln) == {keys: "In ![plan](../Projects/Kiln.md) `[[Kiln]]`.", note: line}
    assert await linking(api, note) == {}


async def test_links_follow_documents_that_come_change_move_go_and_return(api, word):
    note = await added(api, f"to [[Gate {word}]]")
    target = f"Gate {word}"
    assert await leads(api, note) == {target: None}
    gate = await file(api, f"/{word}/Gate {word}.md", "the gate")
    assert await leads(api, note) == {target: gate}
    await api.move_document(gate, f"/{word}/Door {word}.md")
    assert (await leads(api, note), await linking(api, gate)) == ({target: None}, {})
    await api.move_document(gate, f"/{word}/elsewhere/Gate {word}.md")
    assert (await leads(api, note), [*await linking(api, gate)]) == ({target: gate}, [note])
    await api.delete_document(gate)
    assert await leads(api, note) == {target: None}
    await api.restore(gate)
    assert await leads(api, note) == {target: gate}
    await api.update_note(note, text="to nothing any more")
    assert (await leads(api, note), await linking(api, gate)) == ({}, {})
    await api.revert(note, 1)
    assert (await leads(api, note), [*await linking(api, gate)]) == ({target: gate}, [note])
    await api.delete_document(note)
    assert await linking(api, gate) == {}


async def test_a_web_address_is_a_link_if_kb_holds_it(api, word):
    note = await added(api, f"see https://example.org/{word}/, and https://example.org/{word}/none")
    assert await leads(api, note) == {}
    page = await file(api, f"https://example.org/{word}", "# A page\n\nof the web")
    assert await leads(api, note) == {f"https://example.org/{word}/": page}
    assert [*await linking(api, page)] == [note]


async def test_a_note_without_a_path_is_found_by_its_title(api, word):
    target = await added(api, "the text", title=f"My title {word}")
    note = await added(api, f"to [[my TITLE {word}]] and [[#here]]")
    assert await leads(api, note) == {f"my TITLE {word}": target, "#here": note}
    await api.update_note(target, title=f"Renamed {word}")
    assert await leads(api, note) == {f"my TITLE {word}": None, "#here": note}


HABITS = {
    "[x](C%23 notes.md)": None, "[x](C%23%20notes.md)": "C# notes.md", "[[C%23 notes]]": "C# notes.md",
    "[x](<Project Notes/a, b (draft).md>)": "Project Notes/a, b (draft).md",
    "[x](Project%20Notes/a,%20b%20%28draft%29.md#top)": "Project Notes/a, b (draft).md",
    "[[a, b (draft)|shown]]": "Project Notes/a, b (draft).md", "[x](project%20notes)": None,
    "[x](%D6l.md)": "\u00d6l.md", "[[O\u0308L]]": "\u00d6l.md", "![[Node.js]]": "Node.js.md",
    "[x](/{word}/Node.js.md)": "Node.js.md", "[x](file:///{word}/Node.js.md)": "Node.js.md",
    "| [[Node.js\\|in a table]] |": "Node.js.md", "[[node.JS.md#How to|x]]": "Node.js.md",
}  # fmt: skip
"""Links as people and other programs write them, and the files that they lead to."""


async def test_links_as_people_and_other_programs_write_them_lead_to_the_files(api, word):
    names = sorted(filter(None, {*HABITS.values()}))
    ids = {name: await file(api, f"/{word}/{name}", f"{name} of {word}") for name in names}
    for link, name in HABITS.items():
        source = await file(api, f"/{word}/source.md", f"{word}: {link.format(word=word)}")
        found = [*(await leads(api, source)).values()]
        assert found == [ids[name]] if name else not any(found), link


def mail(word, own, answers=(), subject="kiln"):
    headers = [f"Message-ID: <{own}.{word}@example.org>", "From: ada@example.org", f"Subject: {subject}"]
    headers += [f"References: {' '.join(f'<{other}.{word}@example.org>' for other in answers)}"] if answers else []
    return "\r\n".join([*headers, "MIME-Version: 1.0", "", f"{own} {word}"])


async def test_a_mail_is_linked_with_the_mails_that_it_answers(api, word):
    third = await file(api, f"/{word}/3.eml", mail(word, "c", ["a", "b"]))
    assert await leads(api, third) == {}
    first = await file(api, f"/{word}/1.eml", mail(word, "a"))
    second = await file(api, f"/{word}/2.eml", mail(word, "b", ["a"]))
    a, b = (f"<{name}.{word}@example.org>" for name in "ab")
    assert list((await leads(api, third)).items()) == [(b, second), (a, first)]
    assert (await leads(api, second), await leads(api, first)) == ({a: first}, {})
    assert await linking(api, first) == {third: "From: ada@example.org", second: "From: ada@example.org"}
    note = await added(api, f"see [the mail](mid:b.{word}@example.org) and [it](message://%3Ca.{word}@example.org%3E)")
    assert [*(await leads(api, note)).values()] == [second, first]
    await api.delete_document(second)
    assert await leads(api, third) == {a: first}
    await api.restore(second)
    assert await leads(api, third) == {b: second, a: first}
    assert await leads(api, second) == {a: first}


async def test_each_message_of_a_mailbox_is_linked(api, word):
    box = "".join(f"From ada Mon Nov  2 10:00:00 2026\n{mail(word, *each)}\n\n" for each in (["a"], ["b", ["a"]]))
    await file(api, f"/{word}/inbox.mbox", box.replace("\r\n", "\n"))

    async def mails():
        listed = await api.documents(source_prefix=f"/{word}/", doc_type="eml", sort="id")
        return sorted((each["source_path"], each["id"]) for each in listed["documents"])

    (_, first), (_, second) = await eventually_async("both are there", mails, lambda found: len(found) == 2)
    assert await leads(api, second) == {f"<a.{word}@example.org>": first}


AWKWARD = [
    "\u0390" * 500, "🐘" * 500, "%00", "a%00b", "%ff%fe", "../" * 100, "/", "//", "..", ".", "#", "#^", "|", "a|b|c#d", "C:\\x\\y",
    "kb://documents/", "kb://documents/x", "kb://documents/" + "9" * 30, "kb://documents/-1", "https://[", "http://", "https://a b",
    "\u202e", "\ufeff", "'; DROP TABLE links; --", "%", "_", "*", "x" * 2000,
]  # fmt: skip
"""Targets that nobody means, such as some that grow when case is folded."""


async def test_a_note_with_any_target_is_kept_and_its_links_are_answered(api, word):
    text = word + "".join(f"\n[[{target}]] [x]({target}) <{target}> ![]({target})" for target in AWKWARD)
    note = await added(api, text, title="🐘" * 200)
    assert "".join(chunk["text"] for chunk in (await api.document(note))["chunks"]) == text
    assert len((await api.links(note))["links"]) > len(AWKWARD) / 2
    assert await linking(api, note) == {}
    for path in (
        f"/{word}/\u0390.md",
        f"/{word}/#.md",
        f"/{word}/a#b.md",
        f"{word}\\win\\n.md",
        f"https://[{word}/x.md",
    ):
        assert (await api.links(await added(api, f"{path} {word}", source_path=path)))["links"] == []


async def test_the_links_of_no_document_are_refused(api):
    with pytest.raises(NotFound):
        await api.links(10**12)
    with pytest.raises(NotFound):
        await api.look_up_links("[[x]]", 10**12)


async def test_the_links_of_a_text_are_looked_up_before_it_is_saved(api, word):
    near = await file(api, f"/{word}/a/Rope.md", "near")
    far = await file(api, f"/{word}/b/Rope.md", "far")
    own = await file(api, f"/{word}/b/Own.md", "old text without links")
    text = f"[[Rope]] [[{word}/a/Rope]] [[No rope {word}]] [[#Here]] kb://documents/{far}"
    found = {each["target"]: each["document_id"] for each in (await api.look_up_links(text, own))["links"]}
    expected = {"Rope": far, f"{word}/a/Rope": near, f"No rope {word}": None, "#Here": own}
    assert found == expected | {f"kb://documents/{far}": far}
    new = {each["target"]: each["document_id"] for each in (await api.look_up_links(text))["links"]}
    assert new["#Here"] is None
    assert new["Rope"] in (near, far)
    assert await leads(api, own) == {}, "nothing was saved"
    saved = await added(api, text)
    assert await leads(api, saved) == new | {"#Here": saved}


async def test_the_links_of_any_text_are_looked_up(api):
    text = "".join(f"\n[[{target}]] [x]({target}) <{target}> ![]({target})" for target in AWKWARD)
    assert len((await api.look_up_links(text))["links"]) > len(AWKWARD) / 2
