"""Keep each document in at most one collection."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from kb.api.errors import Invalid, KbError
from kb.api.fields import ENDED
from kb.client.client import JSON, EngineClient

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 5
"""Seconds that an answer waits for its job, so that the new document is in one collection when the agent gets it."""

TIMEOUT_SECONDS: Final = 3600
MOVED: Final = "It already existed in the collection {}; kb moved it to {}. To move it back, use kb_set_collection."

MAX_LATE_WAITS: Final = 16
"""Maximum number of jobs to wait for after their answer; each wait holds a connection to the engine."""


class Membership:
    """Keeps each document of one engine in at most one collection.

    Args:
        engine: stores the collections as tags.
        names: the names of the collections; new documents go to the first.
    """

    def __init__(self, engine: EngineClient, names: Sequence[str]) -> None:
        self.names = names
        self._engine = engine
        self._settling: set[asyncio.Task[JSON]] = set()
        self._late_waits = asyncio.Semaphore(MAX_LATE_WAITS)

    @property
    def default(self) -> str:
        return self.names[0]

    def tag(self, name: object) -> str:
        """Return the tag of a collection.

        Raises:
            Invalid: no collection has that name.
        """
        if name not in self.names:
            raise Invalid(f"collection: no {str(name)[:100]!r} exists. Collections: {', '.join(self.names)}.")
        return f"{PREFIX}{name}"

    async def is_empty(self, tag: str) -> bool:
        return not (await self._engine.documents(tag=tag, limit=1))["documents"]

    async def assign(self, document_id: int, tag: str | None) -> JSON:
        """Move a document to a collection, or out of all. Return the document.

        The engine's answer shows a concurrent change, and this method undoes it: the tag of the last writer remains.
        """
        document = await self._engine.document(document_id, chunks=1)
        collections = {tag} if tag else set()
        known = {f"{PREFIX}{name}" for name in self.names}
        while (current := collection_tags(document)) != collections:
            remove = (current | known) - collections
            document = await self._engine.change_tags(document_id, add=[*collections], remove=[*remove])
        return document

    async def settle(self, job_id: int) -> JSON:
        """After the job, keep its document only in the collection to which it was added.

        If the same content already existed in another collection, the engine merges the tags of both. Return fields
        that report this, if the job ends soon.
        """
        task = asyncio.create_task(self._assign_when_done(job_id))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.wait([task], timeout=ANSWER_SECONDS)
        return task.result() if task.done() else {}

    async def _assign_when_done(self, job_id: int) -> JSON:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                job = await self._engine.job(job_id, wait=ANSWER_SECONDS)
                if job["status"] not in ENDED:
                    async with self._late_waits:
                        job = await self._engine.wait_for_job(job_id)
                if job["document_id"] and (collection := min(collection_tags(job), default=None)):
                    return await self._assign(job, collection)
        except (KbError, TimeoutError) as error:
            logger.warning("job %s: the document may be in two collections: %s", job_id, error)
        return {}

    async def _assign(self, job: JSON, collection: str) -> JSON:
        """Move the document of a job to a collection; return fields for the answer if the document already existed."""
        document_id = job["document_id"]
        if not job.get("existed"):
            await self.assign(document_id, collection)
            return {}
        others = collection_tags(await self._engine.document(document_id, chunks=1)) - {collection}
        await self.assign(document_id, collection)
        existed = {"status": job["status"], "document_id": document_id, "existed": True}
        former, new = (tag.removeprefix(PREFIX) for tag in (min(others, default=""), collection))
        return existed | {"rest": MOVED.format(former, new)} if former else existed


PREFIX: Final = "collection:"


def is_collection(tag: object) -> bool:
    return isinstance(tag, str) and tag.strip().startswith(PREFIX)


def collection_tags(holder: JSON) -> set[str]:
    return set(filter(is_collection, holder["tags"]))


def tags_to_field(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON with a field `collection` next to every `tags`, in place of the tag."""
    if isinstance(value, list):
        return [tags_to_field(item) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {name: tags_to_field(field) for name, field in value.items()}
    if isinstance(value.get("tags"), list):
        first = min(collection_tags(value), default=None)
        converted["tags"] = [tag for tag in value["tags"] if not is_collection(tag)]
        converted["collection"] = first.removeprefix(PREFIX) if first else None
    return converted


def field_to_tags(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON with each `collection` among the tags, as texts show it."""
    if isinstance(value, list):
        return [field_to_tags(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {name: field_to_tags(field) for name, field in value.items()}
    if value.get("collection") and isinstance(value.get("tags"), list):
        shown["tags"] = [*value["tags"], f"collection={value['collection']}"]
    return shown
