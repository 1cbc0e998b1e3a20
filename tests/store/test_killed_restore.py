"""A restore that was killed at any moment is finished by whatever works on the data next, or has not begun."""

from __future__ import annotations

import shutil

import pytest

from kb.api.errors import StoreError
from kb.backup.make import back_up
from kb.backup.swap import complete_restore
from kb.exchange.export import export
from kb.exchange.importing import import_folder
from kb.ingest.chunk import Chunker
from kb.repair.doctor import check_data, is_well, repair
from tests.store.test_export import RealData
from tests.support.cut_off import is_killed_after
from tests.support.rare_cases import mostly_rare

pytestmark = pytest.mark.sqlite

BACKED_UP, LATER, IMPORTED = "What was backed up.", "What came after the backup.", "What is imported."


class Killed:
    """Data with a backup from before, of which restores are killed."""

    def __init__(self, folder, model_files, embedder):
        self.folder, self.model_files, self.embedder = folder, model_files, embedder
        self.data, self.backups = self.place("data"), folder / "backups"
        self.add(self.data, BACKED_UP)
        back_up(self.data.settings, self.backups, keep=7)
        self.add(self.data, LATER)

    def place(self, name):
        return RealData(self.folder / name, self.model_files)

    def settings_of(self, folder):
        """The settings for a folder, in which this makes nothing."""
        return self.data.settings.model_copy(update={"data_dir": folder})

    def add(self, place, text):
        with place.open() as store:
            passage = Chunker(self.embedder).passage("A title", text)
            place.add_file(store, text, vectors=self.embedder.embed_passages([passage]))

    def copy(self, renames):
        """A copy of the data, and whether the restore of it was killed after some renames, before its end."""
        folder = self.folder / f"killed-{renames}"
        shutil.copytree(self.data.settings.data_dir, folder)
        return folder, is_killed_after(renames, folder, self.backups)

    def without(self, name):
        """A copy of the data, whose restore was killed when this was set aside and nothing was in its place."""
        copies = (self.copy(renames)[0] for renames in range(1, 9))
        return next(folder for folder in copies if not (folder / name).exists())


@pytest.fixture
def killed(tmp_path, model_files, embedder):
    return Killed(tmp_path, model_files, embedder)


@pytest.fixture
def start(start_server):
    """Starts an engine."""

    def started(settings):
        with start_server(settings.data_dir):
            pass

    return started


@pytest.fixture
def bring_in(killed):
    """Imports a document."""
    other = killed.place("other")
    killed.add(other, IMPORTED)
    export(other.settings, killed.folder / "export", as_notes=False)
    return lambda settings: import_folder(settings, killed.folder / "export", lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize(("act", "added"), [("start", set()), ("bring_in", {IMPORTED})])
def test_a_restore_that_is_killed_is_finished_by_a_start_and_by_an_import(killed, request, act, added):
    act, outcomes, was_killed, renames = request.getfixturevalue(act), [], True, 0
    while was_killed:
        folder, was_killed = killed.copy(renames)
        act(killed.settings_of(folder))
        _, texts, files, _ = killed.place(folder.name).state()
        kept = {raw.decode() for raw in files.values()}
        assert {"".join(each) for each in texts.values()} == kept
        outcomes.append(kept - added)
        everything = {path.read_bytes() for path in folder.glob("**/files/*/*")}
        assert everything == {text.encode() for text in {BACKED_UP, LATER} | added}
        assert not list(folder.glob("restoring-*[0-9]"))
        renames += 1
    assert outcomes[0] == {BACKED_UP, LATER}
    assert all(outcome == {BACKED_UP} for outcome in outcomes[1:])
    assert len(outcomes) > 6


@pytest.mark.slow
def test_the_doctor_tells_of_a_restore_that_was_killed_at_any_moment_and_finishes_it(killed):
    was_killed, renames, told = True, 0, []
    while was_killed:
        folder, was_killed = killed.copy(renames)
        settings = killed.settings_of(folder)
        before, found = contents(folder), check_data(settings)
        told.append(bool(found["interrupted restore"][0]))
        assert not told[-1] or contents(folder) == before
        assert told[-1] is bool(list(folder.glob("restoring-*[0-9]")))
        repair(settings, found, lambda *_: None)
        assert is_well(check_data(settings))
        outcome = killed.place(folder.name).state()[2].values()
        assert list(outcome) == [text.encode() for text in (BACKED_UP, LATER)[: 2 - bool(renames)]]
        renames += 1
    assert told == [False, *[True] * (len(told) - 2), False]
    assert len(told) > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files", "staging"])
def test_an_empty_folder_where_one_was_set_aside_gives_way_to_what_is_restored(killed, name):
    folder = killed.without(name)
    (folder / name).mkdir()
    complete_restore(killed.settings_of(folder))
    assert list(killed.place(folder.name).state()[2].values()) == [BACKED_UP.encode()]
    aside = {path.read_bytes() for path in folder.glob("before-restore-*/files/*/*")}
    assert aside == {BACKED_UP.encode(), LATER.encode()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "came"), mostly_rare([("files", "files/note"), ("kb.db", "kb.db")]))
def test_nothing_is_put_over_what_was_set_aside(killed, name, came):
    folder = killed.without(name)
    settings, came = killed.settings_of(folder), folder / came
    came.parent.mkdir(exist_ok=True)
    came.write_text("something else")
    [aside] = folder.glob(f"before-restore-*/{name}")
    before = contents(folder)
    for _ in range(2):
        with pytest.raises(StoreError, match="An interrupted restore had moved") as refused:
            complete_restore(settings)
        assert f"{aside}, " in refused.value.detail
        assert f" {folder / name} " in refused.value.detail
    assert contents(folder) == before
    came.rename(killed.folder / "elsewhere")
    complete_restore(settings)
    assert list(killed.place(folder.name).state()[2].values()) == [BACKED_UP.encode()]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
