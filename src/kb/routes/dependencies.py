"""Dependencies of the routes: the engine's parts, the caller and its rights."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol
from uuid import uuid4

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from kb.access.grants import Grants
from kb.access.keyring import Keyring
from kb.access.restricted_store import restricted
from kb.api.errors import Forbidden, Unauthorized, Unavailable
from kb.api.fields import NotesFolderAction, Why
from kb.api.folder_models import NotesFolderStatus, WatchRequest
from kb.api.limits import MAX_ID, MAX_PAGE
from kb.api.overview_models import Maintenance, MaintenanceAction
from kb.api.rights import ANYONE, ON_BEHALF_OF, OPERATION, Caller, Right
from kb.api.settings_models import SettingList, SettingsChange
from kb.api.status_models import Attention
from kb.asgi.bearer import CALLER
from kb.documents.disk_use import DiskUse
from kb.documents.originals import Originals
from kb.documents.page_pictures import PagePictures
from kb.embed.protocol import Embedder
from kb.ingest.stop_signal import StopSignal
from kb.ingest.vectors_at_once import NoteVectors
from kb.routes.admission import Admission
from kb.search.document_map import DocumentMapper
from kb.search.service import SearchService
from kb.settings import Settings
from kb.store.protocol import Store, Transaction
from kb.store.rows import Author, Counts, SyncedFolder
from kb.telemetry.instruments import Instruments
from kb.worker.loop import Worker
from kb.worker.reembed import Reembedder

AT_PRIMARY = "kb.at_primary"
"""The key in a request's scope that is true after a replica failed, so that the primary answers."""


class MaintenanceTasks(Protocol):
    """Backups, checks and repairs of the whole data."""

    def state(self) -> Maintenance:
        """Return the backups and the last runs of each action."""

    def begin(self, action: MaintenanceAction) -> Maintenance:
        """Start an action; return the new state."""


class KeptFolders(Protocol):
    """The folders that the engine keeps in step."""

    def status(self) -> NotesFolderStatus | None:
        """Return the state of the notes folder, or None if there is none."""

    def act(self, action: NotesFolderAction, name: str = "") -> NotesFolderStatus:
        """Decide about missing files of a folder; return its state."""

    def check(self, folder: SyncedFolder, request: WatchRequest) -> None:
        """Refuse a folder that the engine cannot write to."""

    def follow(self) -> None:
        """Keep the folders that the database names now."""


class LiveSettings(Protocol):
    """The settings, some of which change while the engine runs."""

    def state(self) -> SettingList:
        """Return all settings and their sources."""

    def change(self, change: SettingsChange) -> SettingList:
        """Change some settings; return all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The engine's parts, which `kb.core` builds."""

    settings: Settings
    store: Store
    embedder: Embedder
    note_vectors: NoteVectors
    worker: Worker
    originals: Originals
    search: SearchService
    stop: StopSignal
    queue: Admission
    keyring: Keyring
    grants: Grants
    pages: PagePictures
    reembedder: Reembedder
    picture_queue: Admission
    thumbnail_queue: Admission
    map: DocumentMapper
    map_queue: Admission
    comparison_queue: Admission
    maintenance: MaintenanceTasks
    kept_folders: KeptFolders
    live_settings: LiveSettings
    instruments: Instruments
    originals_use: DiskUse
    backups_use: DiskUse
    attention: Callable[[Transaction, Counts], list[Attention]]


async def get_services(request: Request) -> Services:
    """Return the running engine's parts, with a store restricted to the caller's rights.

    Raises:
        Unavailable: the engine is still starting.
        Unauthorized, Forbidden: see `get_caller`.
    """
    services: Services | None = getattr(request.app.state, "services", None)
    if services is None:
        raise Unavailable
    caller = get_caller(request, services)
    at_primary = request.scope.get(AT_PRIMARY, False)
    store = restricted(services.store, caller, get_client(request), at_primary=at_primary)
    search = services.search.over(store) if caller.limit or at_primary else services.search
    return replace(services, store=store, search=search)


def get_caller(request: Request, services: Services) -> Caller:
    """Return the caller, or the key on whose behalf a caller with all rights acts.

    Raises:
        Unauthorized: the caller has no valid key.
        Forbidden: the caller may not act on behalf of others, or that key no longer exists.
    """
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None and services.settings.has_key:
        raise Unauthorized
    request.scope[CALLER] = caller = caller or ANYONE
    name = request.headers.get(ON_BEHALF_OF)
    if name is None:
        return caller
    if not caller.may("admin"):
        raise Forbidden(f"{ON_BEHALF_OF}: only a key with the admin right may act for other keys.")
    key = services.keyring.named(name)
    if key is None:
        raise Forbidden(f"Key {name!r} no longer exists.")
    return key.caller


class RequiredRight:
    """The right that a route requires, as a dependency. Each route names one."""

    def __init__(self, right: Right) -> None:
        self.right = right

    async def __call__(self, request: Request, _: Annotated[Services, Depends(get_services)]) -> None:
        """Refuse callers without this right.

        Raises:
            Forbidden: the caller does not have this right.
        """
        check_right(request, self.right)


def check_right(request: Request, right: Right) -> None:
    """Refuse a caller without this right.

    Raises:
        Forbidden: the caller does not have this right.
    """
    caller = get_caller(request, request.app.state.services)
    if not caller.may(right):
        raise Forbidden(f"This key may only {MAY[caller.right]}; this call needs a key with the {right} right.")


MAY: dict[Right, str] = {"read": "read", "write": "read and write", "admin": "do everything"}
READ: Any = Depends(RequiredRight("read"))
WRITE: Any = Depends(RequiredRight("write"))
ADMIN: Any = Depends(RequiredRight("admin"))

ServicesDep = Annotated[Services, Depends(get_services)]


def turn(queue: Callable[[Services], Admission]) -> Any:  # noqa: ANN401 - FastAPI's own
    """Return a dependency that makes the requests of a route wait for their turn in a queue.

    Waiting requests occupy no thread. Raises `Busy` if too many requests wait.
    """

    async def wait(services: ServicesDep, request: Request) -> AsyncIterator[None]:
        async with queue(services).turn(request.scope, _client_of(request, services)):
            yield

    return Depends(wait, scope="function")


def _client_of(request: Request, services: Services) -> str:
    """Return who shares the turns of a queue: a key, or without keys an address."""
    caller = get_caller(request, services)
    return caller.name or (request.client.host if request.client else "")


OPERATION_KEY = re.compile(r"[0-9A-Za-z-]{1,64}")
MAX_CLIENT = 100
"""The length to which a client's name is cut."""


async def get_author(request: Request, why: Annotated[Why, Query()] = None) -> Author:
    """Return the author of the request."""
    return author_from(request, why)


def author_from(request: Request, why: str | None) -> Author:
    """Return the author of the request, with the reason that it gives."""
    name = get_caller(request, request.app.state.services).name
    return Author(name, get_client(request), why, get_operation_key(request, name))


def get_operation_key(request: Request, caller: str | None) -> str:
    """Return the key of the request's operation: from its header, or a new one for this request only."""
    said = request.headers.get(OPERATION, "")
    key = said if OPERATION_KEY.fullmatch(said) else uuid4().hex
    return operation_key(caller, key)


def operation_key(caller: str | None, key: str) -> str:
    """Return the key of an operation in the store; callers cannot add to an operation of another one."""
    return f"{caller or ''}\n{key}"


def get_client(request: Request) -> str | None:
    """Return the program that makes the request, from its User-Agent."""
    agent = request.headers.get("user-agent", "")[:MAX_CLIENT]
    return agent if agent.isprintable() and agent else None


AuthorDep = Annotated[Author, Depends(get_author)]
Id = Annotated[int, Path(ge=1, le=MAX_ID)]
PageLimit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="The maximum number of rows per page.")]


class QueryModel(BaseModel):
    """The query of a request: values are parsed from text, and unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid")


def hashes_in(request: Request) -> set[str] | None:
    """Return the hashes in a request's If-Match headers; None if they allow any (`*`)."""
    if_match = ",".join(request.headers.getlist("if-match"))
    hashes = {tag.strip().strip('"') for tag in if_match.split(",")}
    return None if "*" in hashes else hashes
