"""Replies about the state of the engine."""

from kb.api.document_models import TagCount
from kb.api.fields import Reply, Restriction, Timestamp
from kb.api.folder_models import NotesFolderStatus


class ModelStatus(Reply):
    """The embedding model. `window` is the maximum number of tokens of a text that it reads."""

    name: str
    dimensions: int
    window: int
    precision: str


class ParserStatus(Reply):
    """The process that reads files. `confined` lists its restrictions on this machine, or is null while it starts.

    `extracts` lists the suffixes of files that extractors read (`KB_EXTRACTORS`). `extractors_confined` lists the
    restrictions of extractors that are commands, or is null without such extractors. Without all four restrictions, kb
    runs them only if `KB_EXTRACTORS_UNCONFINED` is set.
    """

    confined: list[Restriction] | None
    extractors_confined: list[Restriction] | None = None
    extracts: list[str] = []


class QueueStatus(Reply):
    """The number of jobs in each state."""

    queued: int
    running: int
    done: int
    failed: int


class HistoryStatus(Reply):
    """The earlier versions: their number, and the bytes of their content.

    The history is complete since `begins`, or entirely if that is null. `bin` is the number of documents in the bin,
    which keeps each for `bin_days`; with 0, a deletion is final.
    """

    versions: int
    size: int
    begins: Timestamp | None
    bin: int
    bin_days: int


class ReplicaStatus(Reply):
    """Whether a replica answers searches; if not, `behind` has the seconds since one was up to date."""

    answers: bool
    behind: float


class ClockStatus(Reply):
    """A jump of the machine's clock. Nothing expires until the clock has been steady for a day, at `until`.

    `moved` is in seconds, negative if the clock went back. `says` is the message for people.
    """

    moved: float
    until: Timestamp
    says: str


class Attention(Reply):
    """Something that needs attention: `says` is the fact, and `remedy` what to do.

    `is_urgent` means that data is at risk or that kb cannot work.
    """

    name: str
    says: str
    remedy: str
    is_urgent: bool


class Status(Reply):
    """The engine's state: `documents` counts by doc_type, `languages` by language, `top_tags` by tag.

    `doc_types` names the types that this engine knows, also from other packages. `database_size` is in bytes.
    `precisions` counts the vectors computed in each precision, including vectors of deleted passages. `full_text` is
    the index that answers keyword searches. `replica` is null without replicas, and `clock` is null while kb trusts the
    machine's clock. `foreign` lists objects in the database that kb did not create, such as a trigger; such an object
    may change saved data. `notes_folder` is null without KB_NOTES_DIR. `attention`
    lists what needs attention, the most urgent first; for a key with a limit it is empty.
    """

    version: str
    schema_version: int
    full_text: str
    model: ModelStatus
    device: str
    provider: str
    documents: dict[str, int]
    doc_types: list[str] = []
    languages: dict[str, int] = {}
    top_tags: list[TagCount]
    chunks: int
    precisions: dict[str, int] = {}
    queue: QueueStatus
    parser: ParserStatus
    history: HistoryStatus
    database_size: int
    replica: ReplicaStatus | None
    clock: ClockStatus | None = None
    foreign: list[str] = []
    notes_folder: NotesFolderStatus | None = None
    attention: list[Attention] = []
