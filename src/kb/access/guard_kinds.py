"""Guards for the methods of a store, in tables of names: they limit each call to the rights of its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from kb.api.errors import Forbidden
from kb.api.rights import Limit
from kb.store.rows import SyncedFolder

if TYPE_CHECKING:
    from kb.access.restricted_store import CallerTransaction

Method = Callable[..., Any]
Guard = Callable[[Method, "CallerTransaction"], Any]
"""Makes the method that a caller gets from the store's method and the caller's transaction."""


Part = TypeVar("Part")


class Guarded(Generic[Part]):
    """A part of a store within one caller's rights.

    A method of the part is what `guards` makes of it, or a method here of the same name. Every other name is refused.

    Args:
        tx: the caller's transaction.
    """

    guards: ClassVar[Mapping[str, Guard]] = {}

    def __init__(self, inner: Part, tx: CallerTransaction) -> None:
        self.inner = inner
        self.tx = tx

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the part's
        if name not in self.guards:
            raise AttributeError(f"{type(self).__name__} has no guard for {name!r}, so callers cannot use it.")
        return self.guards[name](getattr(self.inner, name), self.tx)


def allowed(method: Method, _: CallerTransaction) -> Method:
    """Let every caller use a method or a property without a check."""
    return method


def of_visible(method: Method, tx: CallerTransaction) -> Method:
    """Refuse documents that the caller may not see; the first argument is the document's id."""

    def guarded(document_id: int, *arguments: object, **named: object) -> Any:  # noqa: ANN401 - as the method's
        tx.check(document_id)
        return method(document_id, *arguments, **named)

    return guarded


def changing(action: str) -> Guard:
    """Do as `of_visible`, and record the change of the document."""

    def guard(method: Method, tx: CallerTransaction) -> Method:
        def guarded(document_id: int, *arguments: object, **named: object) -> None:
            of_visible(method, tx)(document_id, *arguments, **named)
            tx.record_change(document_id, action)

        return guarded

    return guard


def filtered(method: Method, tx: CallerTransaction) -> Method:
    """Narrow the filter, which is the first argument, to the caller's limit."""

    def guarded(where: Any, **named: object) -> Any:  # noqa: ANN401 - as the method's
        return method(replace(where, limit=tx.limit), **named)

    return guarded


def within(name: str) -> Guard:
    """Pass the caller's limit as the argument `name`."""

    def guard(method: Method, tx: CallerTransaction) -> Method:
        return lambda *arguments, **named: method(*arguments, **named, **{name: tx.limit})

    return guard


def at_path(method: Method, tx: CallerTransaction) -> Method:
    """Refuse a source path, or a synced folder, that the caller may not write to; it is the first argument."""

    def guarded(place: str | SyncedFolder, *arguments: object, **options: object) -> object:
        path = place if isinstance(place, str) else place.prefix
        if tx.limit and not tx.limit.may_take(path):
            raise path_refusal(path, tx.limit)
        return method(place, *arguments, **options)

    return guarded


def path_refusal(source_path: str, limit: Limit | None) -> Forbidden:
    """Return the error for a path; for a path outside the folder of a key it does not reveal whether that is in use."""
    if limit and limit.folder is None:
        return Forbidden(
            "source_path: this key is limited to tags, so it can only use paths of documents within its limit. "
            "A key limited to a folder can use all paths in it."
        )
    if limit and limit.is_outside(source_path):
        return Forbidden(f"source_path: this key is limited to {described(limit)}. Choose a path in this folder.")
    return Forbidden(f"This key may not write to {source_path}.")


def described(limit: Limit | None) -> str:
    if limit is None:
        return "nothing"
    tags = f"documents tagged {' or '.join(limit.tags)}" if limit.tags else "documents"
    return f"{tags} in {limit.folder}" if limit.folder else tags
