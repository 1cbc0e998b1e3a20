"""Evernote exports: each note a document of its own, with its title, tags, date, source and files."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from hashlib import md5

import pytest

from kb.api.errors import Unreadable
from kb.formats.extract import extract
from kb.formats.text.parts import MAX_PARTS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(3000)


def note(title="Cave trip", body="<div>We meet at the cave.</div>", more=""):
    content = f'<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "http://x/enml2.dtd"><en-note>{body}</en-note>'
    return f"<note><title>{title}</title><content><![CDATA[{content}]]></content>{more}</note>"


def export(*notes):
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE en-export SYSTEM "http://x/evernote-export4.dtd">\n'
    return f'{head}<en-export export-date="20260301T080000Z" version="10">{"".join(notes)}</en-export>'.encode()


def resource(data, mime, name=""):
    attributes = f"<resource-attributes><file-name>{name}</file-name></resource-attributes>" if name else ""
    coded = b64encode(data).decode()
    return f'<resource><data encoding="base64">\n{coded}\n</data><mime>{mime}</mime>{attributes}</resource>'


def media(data, mime="image/png"):
    return f'<en-media style="a > b" hash="{md5(data, usedforsecurity=False).hexdigest()}" type="{mime}"/>'


def read(*notes):
    doc_type, extracted = extract(export(*notes), "notes.enex", pictures=True)
    assert doc_type == "enex"
    return extracted


def test_an_export_lists_its_notes_and_each_is_a_document():
    extracted = read(note("Cave trip"), note("Bread &amp; salt", "<div>The rye starter.</div>"))
    assert extracted.text == "2 notes\n\nCave trip\nBread & salt\n"
    assert [each.filename for each in extracted.attachments] == ["0001 Cave trip.enex", "0002 Bread & salt.enex"]
    doc_type, second = extract(extracted.attachments[1].data, extracted.attachments[1].filename)
    assert (doc_type, second.title, second.text) == ("enex", "Bread & salt", "Bread & salt\n\nThe rye starter.\n")


def test_a_note_has_its_tags_dates_and_where_it_is_from():
    about = "<note-attributes><source-url>https://x.example/cave</source-url><author>Petra</author></note-attributes>"
    extracted = read(
        note(
            more=f"<created>20260214T080000Z</created><updated>20260301T090000Z</updated><tag>outdoors</tag><tag>night walk</tag>{about}"
        )
    )
    assert (extracted.title, extracted.tags, extracted.date) == (
        "Cave trip",
        ("outdoors", "night walk"),
        "2026-02-14T08:00:00Z",
    )
    assert "Source: https://x.example/cave\nAuthor: Petra\n" in extracted.text


def test_a_picture_is_a_few_words_in_its_place_and_another_file_a_document():
    lease = b"The lease ends in March."
    body = f"<div>Before</div><div>{media(PNG)}</div><div>between {media(lease, 'text/plain')} after</div>"
    extracted = read(note(body=body, more=resource(PNG, "image/png") + resource(lease, "text/plain", "lease.txt")))
    assert extracted.text == "Cave trip\n\nBefore\n[picture: image/png, 3 kB]\nbetween [lease.txt] after\n"
    assert [(each.filename, each.data) for each in extracted.attachments] == [("lease.txt", lease)]
    assert [each.read() for each in extracted.pictures] == [PNG]


def test_boxes_to_tick_lists_and_entities_are_read():
    body = "<div><en-todo checked='true'/>rope</div><div><en-todo/>lamp&nbsp;oil</div><ul><li>one</li></ul>"
    assert read(note(body=body)).text.endswith("[x] rope\n[ ] lamp oil\n\n- one\n")


def test_what_is_encrypted_is_said_and_counted():
    extracted = read(note(body="<div>Code: <en-crypt hint='h'>AbCd1234</en-crypt></div>"))
    assert extracted.text.endswith("Code: [encrypted]\n")
    assert extracted.omitted == {"encrypted": 1}


def test_files_that_are_damaged_are_counted_and_the_note_is_read():
    extracted = read(note(more="<resource><data>A</data><mime>application/pdf</mime></resource>"))
    assert "We meet at the cave." in extracted.text
    assert extracted.omitted == {"files": 1}


def test_a_large_export_becomes_exports_that_become_notes():
    extracted = read(*(note(f"Note {number}") for number in range(MAX_PARTS + 5)))
    assert [each.filename for each in extracted.attachments] == ["0001-0100.enex", "0101-0105.enex"] or len(
        extracted.attachments
    ) <= MAX_PARTS
    inner = [extract(each.data, each.filename)[1] for each in extracted.attachments]
    assert sum(len(each.attachments) or 1 for each in inner) == MAX_PARTS + 5


def test_a_note_that_was_cut_off_is_read_as_far_as_it_goes():
    source = export(note("First"), note("Second", "<div>The last words</div>"))
    extracted = extract(source[:-30], "notes.enex")[1]
    assert len(extracted.attachments) == 2
    assert "The last words" in extract(extracted.attachments[1].data, "n.enex")[1].text


def test_an_export_of_nothing_says_so():
    with pytest.raises(Unreadable, match="no note"):
        extract(export(), "notes.enex")


def test_bombs_are_not_unpacked():
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = (
        f'<?xml version="1.0"?><!DOCTYPE en-export [<!ENTITY e0 "lol">{entities}]><en-export>{note("&e9;")}</en-export>'
    )
    _, extracted = extract(bomb.encode(), "bomb.enex")
    assert len(extracted.text) < 10 * len(bomb)
    for piece in (
        "<note>",
        "<note><title>",
        "<note><content><![CDATA[<en-note><en-crypt>",
        "<note><content><![CDATA[<en-media ",
    ):
        source = f"<en-export>{piece * 20_000}</en-export>".encode()
        with suppress(Unreadable):
            extract(source, "bomb.enex")


def test_pictures_and_files_without_data_are_counted_each_for_itself():
    empty = "<resource><data></data><mime>{}</mime></resource>"
    extracted = read(note(more=empty.format("image/png") + empty.format("image/png") + empty.format("application/pdf")))
    assert (extracted.pictures, extracted.attachments, extracted.omitted) == ((), (), {"files": 3})
