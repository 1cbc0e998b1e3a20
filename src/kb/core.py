"""Builds the parts of the process, from the model and the database to the services of the routes."""

import logging
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from prometheus_client import Info
from prometheus_client.registry import Collector

from kb import __version__, clock
from kb.access.grants import Grants
from kb.access.keyring import FILE, Keyring, take_in
from kb.api.errors import FilesUnavailable, ModelError, SettingError
from kb.api.limits import MAX_TAGS
from kb.backup.record import BackupRecord
from kb.backup.schedule import BackupSchedule
from kb.backup.swap import complete_restore
from kb.documents.blob_place import bring_in, open_blobs
from kb.documents.disk_use import DiskUse, kept_sizes, sizes
from kb.documents.originals import Originals, queue_unread
from kb.documents.page_pictures import PagePictures
from kb.documents.thumbnails import Thumbnails
from kb.embed.protocol import Embedder
from kb.filesystem import make_folder, warn_root
from kb.formats.installed_types import DOC_TYPES
from kb.gauges import Gauges
from kb.ingest.active_model import ActiveModel, open_model_for
from kb.ingest.stop_signal import StopSignal
from kb.ingest.vectors_at_once import NoteVectors
from kb.live_settings import LiveSettings, Part, check_backup_folder, check_inbox_folder
from kb.notes_folder.folders import KeptFolders
from kb.notes_folder.parts import FolderParts
from kb.parser.drop_privileges import forbid_inspection
from kb.parser.extracting_sandbox import ExtractingSandbox
from kb.parser.extractors import Extractors, check_languages
from kb.parser.sandbox import Limits
from kb.repair.named_model import open_named_model
from kb.repair.tasks import MaintenanceTasks
from kb.routes.admission import Admission
from kb.routes.dependencies import Services
from kb.running_engine import lock_path
from kb.search.document_map import DocumentMapper
from kb.search.recall_monitor import RecallMonitor
from kb.search.service import SearchService
from kb.settings import Settings
from kb.situation import Situation
from kb.store.engine_lock import sole_user
from kb.store.open import open_store
from kb.store.protocol import Store
from kb.store.rows import VectorSpace
from kb.telemetry.instruments import FollowingPool, Instruments
from kb.worker.job import WorkerParts
from kb.worker.job_waiters import JobWaiters
from kb.worker.loop import Worker
from kb.worker.reembed import Reembedder

logger = logging.getLogger(__name__)

MAX_SEARCHES = 6
"""The maximum number of searches at once, on any number of cores. The store has more connections for readers."""

MAX_WAIT = 1.2
"""The longest expected wait of a search in seconds, so that with its own time it takes two at most."""

MAX_PICTURES = 8
"""The maximum number of page pictures in progress or waiting. kb draws one after another."""

MAX_THUMBNAILS = 64
"""The same for thumbnails: a list asks for several at once, and most are kept."""

LOOK_SECONDS = 2.0
"""How often clients that wait for a job check it, if other processes do jobs and notifications may be lost."""

DRAWING_SECONDS = 10
"""The time limit for drawing a page, short because somebody waits for it."""

MAX_MAPS = 16
MAPS_AT_ONCE = 2
"""The number of maps sent at once; each may contain 10,000 documents."""

MAX_COMPARISONS = 8


def check_settings(settings: Settings) -> None:
    """Refuse settings that do not apply to this kind of database.

    Raises:
        SettingError: a setting does not apply.
    """
    kind = settings.store_kind
    if settings.backup_dir and kind.is_shared:
        raise SettingError(
            f"KB_BACKUP_DIR: kb can only back up SQLite databases. Unset it, and back up {kind.title} with"
            f" {kind.own_tools}."
        )
    if not (settings.workers or kind.is_shared):
        raise SettingError("KB_WORKERS: 0 is only for PostgreSQL. With SQLite, no other process could do the jobs.")
    if settings.database_read_url and not kind.is_shared:
        raise SettingError("KB_DATABASE_READ_URL: replicas need PostgreSQL. Set KB_DATABASE_URL to the primary.")


@dataclass(frozen=True, slots=True)
class Core:
    """The parts that work on the queue."""

    store: Store
    embedder: ActiveModel
    wanted: VectorSpace
    originals: Originals
    worker: Worker
    stop: StopSignal


def open_core(
    settings: Settings, instruments: Instruments, stack: ExitStack, *, works: bool, read_url: str | None = None
) -> Core:
    """Open the model and the database, and start the worker if this process `works`; `stack` stops them in reverse.

    Raises:
        StartError: the data folder, the model or the database cannot be used.
    """
    forbid_inspection()
    make_folder(settings.data_dir, "KB_DATA_DIR")
    warn_root(settings.data_dir)
    stack.enter_context(sole_user(lock_path(settings.data_dir)))
    clock.own.keep_in(settings.data_dir)
    stack.callback(clock.own.forget)
    complete_restore(settings)
    for folder in (settings.staging_dir, settings.files_dir):  # a restore may have set them aside
        make_folder(folder, "KB_DATA_DIR")
    model, space, default_space = open_models(settings, instruments)
    embedder = ActiveModel(model)
    embedder.embed_passages(["warm"])
    store = stack.enter_context(open_store(settings, space, read_url))
    originals = open_originals(settings, store)
    stop = StopSignal()
    extractors = make_extractors(settings)
    sandbox = ExtractingSandbox(
        parser_limits(settings),
        extractors,
        settings.extract_seconds,
        settings.staging_dir,
        unconfined=settings.extractors_unconfined,
    )
    ends = JobWaiters(LOOK_SECONDS if store.is_shared else None)
    parts = WorkerParts(store, embedder, originals, sandbox, instruments, stop, ends)
    worker = Worker(parts, settings.staging_dir, settings.keep_jobs_days)
    stack.callback(worker.stop)  # before it starts, because an interruption may come in between
    if works:
        if extractors.of_kind("image"):
            queue_unread(store, originals.blobs)
        worker.start()
    else:
        worker.tidy()
    store.listen(worker.wake, worker.ends.publish)
    return Core(store=store, embedder=embedder, wanted=default_space, originals=originals, worker=worker, stop=stop)


def open_originals(settings: Settings, store: Store) -> Originals:
    """Return the original files; if engines share them, first move local files of earlier versions there."""
    blobs = open_blobs(settings.blob_url, store, settings.files_dir.parent)
    if blobs.is_shared:
        bring_in(store, blobs, settings.files_dir.parent, settings.data_dir)
    small = Thumbnails(None if blobs.is_shared else settings.thumbnails_dir)
    return Originals(blobs, small, keep=settings.keep_files)


def start_worker(settings: Settings, instruments: Instruments, stack: ExitStack) -> Core:
    """Start the worker; `stack` stops it. Raises the same errors as `open_core`."""
    core = open_core(settings, instruments, stack, works=True)
    register(Gauges(core.store, DOC_TYPES), instruments, stack)
    start_reembedder(core, settings, instruments, stack)
    return core


def start_reembedder(core: Core, settings: Settings, instruments: Instruments, stack: ExitStack) -> Reembedder:
    """Start the reembedder and the metrics of the model; `stack` stops them."""
    info = Info("kb_engine", "The engine's version and model.", registry=None)
    info.info(about(core.embedder))

    def switched(model: Embedder) -> None:
        info.info(about(model))
        core.worker.wake()

    reembedder = Reembedder(core.store, settings, core.wanted, core.embedder, switched)
    stack.callback(reembedder.close)
    reembedder.resume()
    register(info, instruments, stack)
    return reembedder


def register(collector: Collector, instruments: Instruments, stack: ExitStack) -> None:
    """Show the metrics of a collector until `stack` closes."""
    instruments.registry.register(collector)
    stack.callback(instruments.registry.unregister, collector)


def start(live: LiveSettings, keyring: Keyring, instruments: Instruments, stack: ExitStack) -> Services:
    """Build the parts and start the worker; `stack` stops them in reverse. Raises the same errors as `open_core`."""
    live.skip_unusable("ocr", make_extractors)
    live.skip_unusable("inbox_dir", check_inbox_folder)
    live.skip_unusable("backup_dir", check_backup_folder)
    settings = live.settings
    core = open_core(settings, instruments, stack, works=settings.workers > 0, read_url=settings.database_read_url)
    store, embedder, originals, worker = core.store, core.embedder, core.originals, core.worker
    open_keyring(keyring, core, settings, stack)
    grants = Grants(store, keyring)
    stack.callback(grants.flush)
    record = BackupRecord()
    maintenance = stack.enter_context(MaintenanceTasks(settings, record))
    start_parts(core, live, maintenance, record, stack)
    has_gpu = embedder.device != "cpu"
    at_once = searches_at_once(waits=has_gpu or store.is_shared)
    pool = stack.enter_context(FollowingPool(at_once, "kb-search"))
    queue = Admission(settings.max_searches, at_once, gives_way=lambda: worker.is_busy, patience=MAX_WAIT)
    recall = stack.enter_context(closing(RecallMonitor(store, instruments)))
    pictures = stack.enter_context(PagePictures(store, originals, drawing_limits(settings)))
    reembedder = start_reembedder(core, settings, instruments, stack)
    note_pool = stack.enter_context(FollowingPool(1, "kb-notes"))

    def is_alone() -> bool:
        return has_gpu or not (queue.is_crowded or worker.is_busy or reembedder.is_busy)

    note_vectors = NoteVectors(embedder, note_pool, is_alone)
    kept_folders = start_folders(core, live, note_vectors, stack)
    files, backups = DiskUse(partial(kept_sizes, originals.blobs)), DiskUse(partial(backup_sizes, live))
    queues = {
        "searches": queue,
        "pictures": Admission(MAX_PICTURES, 1, "page pictures are requested"),
        "thumbnails": Admission(MAX_THUMBNAILS, 4, "thumbnails are requested"),
        "maps": Admission(MAX_MAPS, MAPS_AT_ONCE, "maps are requested"),
        "comparisons": Admission(MAX_COMPARISONS, 1, "comparisons are requested"),
    }
    sizes = {"files": files, "backups": backups}
    situation = Situation(live, store, record, kept_folders, sizes, partial(refusals, queues))
    register(Gauges(store, DOC_TYPES, situation.signals), instruments, stack)
    return Services(
        settings=settings,
        store=store,
        embedder=embedder,
        note_vectors=note_vectors,
        worker=worker,
        originals=originals,
        search=SearchService(store, embedder, pool, instruments, recall, is_alone),
        stop=core.stop,
        queue=queue,
        keyring=keyring,
        grants=grants,
        pages=pictures,
        reembedder=reembedder,
        picture_queue=queues["pictures"],
        thumbnail_queue=queues["thumbnails"],
        map=stack.enter_context(DocumentMapper(store)),
        map_queue=queues["maps"],
        comparison_queue=queues["comparisons"],
        kept_folders=kept_folders,
        maintenance=maintenance,
        live_settings=live,
        instruments=instruments,
        originals_use=files,
        backups_use=backups,
        attention=situation.attention,
    )


def refusals(queues: Mapping[str, Admission]) -> dict[str, int]:
    """Return the number of requests that each queue refused."""
    return {name: queue.refused for name, queue in queues.items()}


def open_keyring(keyring: Keyring, core: Core, settings: Settings, stack: ExitStack) -> None:
    """Connect the keyring to the database, if the keys are there; `stack` writes pending times of use at its end."""
    if core.store.keys:
        take_in(settings.data_dir / FILE, core.store.keys)
        keyring.open(core.store.keys)
    stack.callback(keyring.flush)


def start_parts(
    core: Core, live: LiveSettings, maintenance: MaintenanceTasks, record: BackupRecord, stack: ExitStack
) -> None:
    """Start the parts that follow settings while they change; `stack` stops them."""

    def backups(settings: Settings) -> BackupSchedule | None:
        maintenance.use(settings)
        folder = settings.backup_dir
        return BackupSchedule(settings, folder, record) if folder else None

    def ocr(settings: Settings) -> None:
        extractors = make_extractors(settings)
        core.worker.sandbox.use(extractors)
        if extractors.of_kind("image"):
            queue_unread(core.store, core.originals.blobs)
            core.worker.wake()

    live.add(Part(("backup_dir", "backup_hours", "backup_keep"), check_backup_folder, backups), stack)
    live.add(Part(("ocr",), check_ocr, ocr), stack, is_started=True)


def backup_sizes(live: LiveSettings) -> Iterator[int]:
    """Return the sizes of the files in the backup folder.

    Raises:
        FilesUnavailable: no backup folder is set.
    """
    if live.settings.backup_dir is None:
        raise FilesUnavailable
    return sizes(live.settings.backup_dir)


def start_folders(core: Core, live: LiveSettings, note_vectors: NoteVectors, stack: ExitStack) -> KeptFolders:
    """Keep the notes folder, the inbox and the vaults in step; `stack` stops that."""
    settings = live.settings
    parts = FolderParts(
        Path(),
        core.store,
        core.originals,
        note_vectors,
        settings.max_note_chars,
        with_ids=settings.notes_id,
        most_file_bytes=settings.max_upload_mb << 20,
        wake=core.worker.wake,
    )
    folders = stack.enter_context(KeptFolders(parts, settings))
    live.add(Part(("inbox_dir",), check_inbox_folder, folders.inbox), stack)
    return folders


def searches_at_once(*, waits: bool) -> int:
    """Return how many searches run at once: one per core, and one more if searches wait for a GPU or a server."""
    from kb.embed.onnx.session import available_cores

    return min(max(2, available_cores()) + waits, MAX_SEARCHES)


def open_models(settings: Settings, instruments: Instruments) -> tuple[Embedder, VectorSpace, VectorSpace]:
    """Return the model of the database's vectors, its space, and the space of the model that the settings name.

    If the first model is not found, the second one takes its place, and the store refuses it.
    """
    named, in_use = open_named_model(settings, instruments.embedded)
    space = VectorSpace.of(named.spec, settings.model_dir)
    if in_use is None or in_use == space:
        space = replace(space, folder=space.folder or (in_use.folder if in_use else None))
        return named, space, space
    try:
        model = open_model_for(in_use, settings, instruments.embedded)
    except ModelError:
        return named, space, space
    logger.warning("searches use the vectors of %s; run 'kb reembed' to switch to %s", in_use, space)
    return model, in_use, space


def parser_limits(settings: Settings) -> Limits:
    return Limits(
        seconds=settings.parse_seconds,
        memory_mb=settings.parse_memory_mb,
        index_ratio=settings.index_ratio,
        own_tags=MAX_TAGS if settings.own_tags else 0,
    )


def make_extractors(settings: Settings) -> Extractors:
    """Return the extractors for files without a built-in reader.

    Raises:
        SettingError: the setting is invalid, or a program is missing.
    """
    try:
        return Extractors.parse(settings.extractors, settings.ocr)
    except ValueError as error:
        raise SettingError(f"KB_EXTRACTORS, KB_OCR: {error}") from None


def check_ocr(settings: Settings) -> None:
    """Refuse a setting with which no picture could be read.

    Raises:
        SettingError: Tesseract or a language is not installed.
    """
    make_extractors(settings)
    try:
        check_languages(settings.ocr)
    except (ValueError, subprocess.SubprocessError, OSError) as error:
        raise SettingError(f"KB_OCR: {error}") from None


def drawing_limits(settings: Settings) -> Limits:
    seconds = min(settings.parse_seconds, DRAWING_SECONDS)
    return replace(parser_limits(settings), seconds=seconds, thumbnails=True)


def about(embedder: Embedder) -> dict[str, str]:
    """Return the labels of the engine's info metric."""
    model = {"model": embedder.spec.name, "precision": embedder.spec.precision, "provider": embedder.provider}
    return {"version": __version__} | model
