"""The functions of a module that opens a kind of databases (`kb.api.store_kinds.StoreKind.backend`)."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from kb.blobs.protocol import Blobs
from kb.settings import Settings
from kb.store.protocol import Keys, Store, Transaction
from kb.store.rows import VectorSpace
from kb.store.sql.documents import Documents
from kb.store.sql.export_tables import Transfer


class MovedTransaction(Transaction, Protocol):
    """A transaction whose rows an export or an import reads and writes."""

    @property
    def documents(self) -> Documents: ...
    @property
    def transfer(self) -> Transfer:
        """Its rows in the form of an export."""

    @property
    def keys(self) -> Keys | None:
        """The keys, if they are in the database."""


class MovedStore(Store, Protocol):
    def read(self) -> AbstractContextManager[MovedTransaction]: ...
    def write(
        self, checkpoint: Callable[[], None] = ..., *, urgent: bool = ...
    ) -> AbstractContextManager[MovedTransaction]: ...


class BlobPlace(Protocol):
    """The database's record of where uploaded files are. Until the block ends, nobody else can change it."""

    id: str
    """The id of the database."""

    is_outside: bool
    """Whether the files are outside the database."""

    @property
    def holds_files(self) -> bool:
        """Whether the database itself contains files."""

    def set_outside(self) -> None:
        """Record that the files are now outside the database."""


class SharedStore(MovedStore, Protocol):
    """A store for several engines: they share its keys and files too."""

    def blobs(self, scratch: Path) -> Blobs:
        """Return the files in the database; kb copies one into the folder `scratch` to read it as a file."""

    def blob_place(self) -> AbstractContextManager[BlobPlace]: ...


class Backend(Protocol):
    def opened(
        self, settings: Settings, space: VectorSpace, read_url: str | None
    ) -> AbstractContextManager[MovedStore]:
        """Open the store for an engine, with replicas at `read_url`. Raises as `kb.store.open.open_store`."""

    def opened_alone(self, settings: Settings, space: VectorSpace) -> AbstractContextManager[MovedStore]:
        """Open the store for an import, which has the locks of the data folder and of a database file.

        Raises:
            StoreError: the database cannot be opened, holds vectors of another space, or an engine uses it.
        """

    def space_in_use(self, settings: Settings) -> VectorSpace | None:
        """Return the space of a database's vectors; None if it has no vectors or cannot be read."""

    def moment(self, settings: Settings) -> AbstractContextManager[MovedTransaction]:
        """Open a snapshot of a shared database, which later writes do not change.

        Raises:
            StoreError: the database cannot be read.
        """

    def files(
        self, settings: Settings, scratch: Path
    ) -> AbstractContextManager[tuple[Blobs, Callable[[], AbstractContextManager[BlobPlace]]]]:
        """Open the files in a shared database without an engine, and lend the record of where files are.

        Raises:
            StoreError: the database cannot be used.
        """
