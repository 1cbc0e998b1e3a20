"""The base of the transactions of both stores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kb.api.rights import Caller
from kb.store.protocol import Keys
from kb.store.row_mapping import Execute
from kb.store.rows import Counts, Filter, Retention
from kb.store.sql.audit import Audit
from kb.store.sql.dismissals import Dismissals
from kb.store.sql.documents import Documents
from kb.store.sql.folders import Folders
from kb.store.sql.grants import Grants
from kb.store.sql.history import History
from kb.store.sql.jobs import Jobs
from kb.store.sql.note_files import NoteFiles
from kb.store.sql.operations import Operations
from kb.store.statements import Statements


class Transaction(ABC):
    """See `kb.store.protocol.Transaction`.

    Args:
        execute: its connection's.
        statements: the store's.
        jobs: its queue.
        retention: the limits of the history, the bin and the audit log.
    """

    keys: Keys | None = None
    """The keys, if they are in the database."""

    def __init__(
        self, execute: Execute, statements: Statements, documents: Documents, jobs: Jobs, retention: Retention
    ) -> None:
        self._execute = execute
        self._statements = statements
        self.documents = documents
        self.links = documents.links
        self.jobs = jobs
        self.history = History(execute, statements, documents, retention)
        self.audit = Audit(execute, statements("audit"), retention)
        self.operations = Operations(execute, statements("operations"))
        self.folders = Folders(execute, statements("folders"))
        self.grants = Grants(execute, statements("grants"))
        self.dismissals = Dismissals(execute, statements("dismissals"))

    def note_files(self, folder: str) -> NoteFiles:
        return NoteFiles(self._execute, self._statements("note_files"), folder)

    def counts(self, of: Caller | None = None) -> Counts:
        sql = self._statements("documents")
        condition, parameters = self.documents.conditions.admitted(Filter(limit=of.limit if of else None))
        chunks = self._execute(sql["count_chunks_of"].format(condition=condition), parameters) if of else None
        precisions = None if of else self._execute(self._statements("vectors")["select_precisions"])
        return Counts(
            documents=dict(self._execute(sql["count_by_type"].format(condition=condition), parameters).fetchall()),
            languages=dict(self._execute(sql["count_by_language"].format(condition=condition), parameters).fetchall()),
            chunks=(chunks or self._execute(sql["count_chunks"])).get,
            jobs=self.jobs.count(of),
            queue_age=0 if of else self.jobs.queue_age(),
            size=0 if of else self.size,
            precisions=dict(precisions.fetchall()) if precisions else {},
            foreign=() if of else self.foreign_names(),
        )

    @property
    @abstractmethod
    def size(self) -> int:
        """The size of the database in bytes, without the files in it."""

    def foreign_names(self) -> Sequence[str]:
        """Return the names of declarations in the database that kb never makes."""
        return ()
