"""What is taken out of an export or a mailbox keeps its name: it is where its document is found again."""

import csv
import io
import json

import pytest

from kb.formats.extract import extract
from kb.formats.text.parts import batch_name, batches, is_batch

TITLE = f'Re: 1/2 \\ a#b "c" ? {"x" * 100}'
ZOTERO = ("Key", "Item Type", "Author", "Title", "Publication Title", "Manual Tags", "Date")


def mailbox(*subjects):
    return "".join(
        f"From ann@example.org Mon Jan  1 10:00:00 2024\nSubject: {subject}\nFrom: Ann\n\nwords\n"
        for subject in subjects
    ).encode()


def conversations(*titles):
    turns = [{"sender": "human", "text": "words", "created_at": "2025-02-01T10:00:00Z"}]
    return json.dumps([{"uuid": "0123456789", "name": title, "chat_messages": turns} for title in titles]).encode()


def references(*titles):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, ZOTERO, restval="")
    writer.writeheader()
    writer.writerows({"Key": "K#EY", "Title": title, "Date": "2025"} for title in titles)
    return file.getvalue().encode()


def names_in(data, filename):
    return [each.filename for each in extract(data, filename)[1].attachments]


@pytest.mark.parametrize(
    ("made", "filename", "names"),
    [
        (mailbox, "a.mbox", [f"0001 Re- 1-2 - a#b -c- - {'x' * 80}.eml", "0002 message.eml"]),
        (conversations, "a.json", [f"Re- 1-2 - a-b -c- - {'x' * 80} 01234567.md", "Conversation 01234567.md"]),
        (references, "a.csv", [f"Re 1 2 a b c {'x' * 80} K EY.md", "K EY.md"]),
    ],
)
def test_a_part_has_the_name_that_its_title_always_gave_it(made, filename, names):
    assert names_in(made(TITLE, ""), filename) == names


@pytest.mark.parametrize(
    ("made", "filename", "names"),
    [
        (mailbox, "a.mbox", ["0001-10000.mbox", "10001-10001.mbox"]),
        (conversations, "a.json", ["00001-10000.json", "10001-20000.json"]),
        (references, "a.csv", ["00001-10000.csv", "10001-20000.csv"]),
    ],
)
def test_more_than_a_hundred_batches_are_batches_of_batches(made, filename, names):
    assert names_in(made(*(f"Part {number}" for number in range(10_001))), filename) == names


def test_only_the_files_of_batches_are_called_like_them():
    [first, second] = batches(range(150))
    assert [batch_name(each, ".mbox") for each in (first, second)] == ["0001-0100.mbox", "0101-0150.mbox"]
    assert is_batch("0001-0100.mbox")
    assert not any(map(is_batch, ("0001 Trip.enex", "0001-0100.eml", "a 0001-0100.mbox")))
