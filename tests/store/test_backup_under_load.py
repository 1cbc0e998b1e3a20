"""A backup has one point in time of data that changes during it in every way, with history and bin."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from kb.backup.make import back_up
from kb.backup.restore import restore_backup, verify_backups
from kb.backup.storage import backup_folders
from kb.backup.verify import verify_data
from kb.documents.delete import delete
from kb.documents.note_edit import Edit, NoteChange
from kb.documents.restore_document import restore, revert
from kb.documents.tags import change_tags
from kb.documents.write_updated_note import update_note
from kb.ingest.draft import draft_note, embed_draft
from kb.store.rows import Author
from tests.store.test_export import RealData, past_in
from tests.support.eventually import eventually
from tests.support.note_vectors import at_once

BACKUPS = 6
NOTES = 4
AUTHOR = Author("mallory", "cli/1", "as people do")


def moment(data, store):
    """The documents with their texts and files, their earlier versions, and the bin."""
    documents, texts, files, _ = data.state(store)
    with store.read() as tx:
        return documents, texts, files, past_in(tx)


def write(data, embedder, moments, stopping):
    """Change something repeatedly, and note the state after each change."""
    chance = random.Random(7)

    def change(number):
        note = 1 + number % NOTES
        yield lambda: update_note(
            store, at_once(embedder), note, NoteChange(Edit(f"Seen {number} times.")), author=AUTHOR
        )
        yield lambda: change_tags(store, note, add=[f"tag{number}"], remove=[f"tag{number - NOTES}"])
        added.append(data.add_file(store, text := f"file {number}", vectors=embedder.embed_passages([text])))
        yield lambda: revert(store, data.originals, note, chance.randint(1, 2), author=AUTHOR)
        yield lambda: delete(store, data.originals, added[-1], AUTHOR)
        if number % 2:
            yield lambda: restore(store, added[-1], AUTHOR)

    with data.open() as store:
        for number in range(NOTES):
            with store.write() as tx:
                made = embed_draft(draft_note(f"Ship {number}.", None, embedder), embedder)
                tx.documents.add(made, None, ["ship"])
        added = []
        for number in count(1):
            for step in change(number):
                moments.append(moment(data, store))
                step()
                moments.append(moment(data, store))
                if stopping.is_set():
                    return


@pytest.mark.slow
def test_a_backup_under_load_is_one_moment_of_it(tmp_path, model_files, embedder):
    data, backups = RealData(tmp_path / "data", model_files), tmp_path / "backups"
    moments, stopping = [], threading.Event()
    with data.open():
        pass
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write, data, embedder, moments, stopping)
        try:
            for number in range(BACKUPS):
                eventually("the writer goes on", lambda: writer.done() or len(moments) > 14 * number)  # noqa: B023 - called here
                assert back_up(data.settings, backups, keep=100).manifest.missing == []
        finally:
            stopping.set()
        writer.result()
    seen = set()
    for number, folder in enumerate(backup_folders(backups)[1:]):
        place = RealData(tmp_path / f"restored-{number}", model_files)
        restore_backup(place.settings, folder)
        with place.open() as store:
            found = moment(place, store)
        seen.add(moments.index(found))
        assert list(verify_data(place.settings)) == []
    assert len(seen) > 2
    assert list(verify_backups(backups)) == []
