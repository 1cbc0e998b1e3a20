"""Documents with the same content, or with nearly the same text."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from kb.api.document_models import Dismissal, DismissedGroup, DuplicateGroup, DuplicateList
from kb.api.fields import DocumentsCursor
from kb.api.history_models import Change, DocumentDiff
from kb.documents.diff import diff
from kb.documents.lookup import existing_document
from kb.routes.dependencies import READ, WRITE, Id, QueryModel, ServicesDep, turn
from kb.routes.documents import to_models
from kb.routes.error_replies import problems
from kb.routes.thread_route import ThreadRoute
from kb.search.near_duplicate_documents import pairs_of, scan
from kb.store.protocol import Transaction

router = APIRouter(route_class=ThreadRoute, tags=["documents"])
TURN: Any = turn(lambda services: services.comparison_queue)

SHOWN = 100
"""The maximum number of documents of a group."""


class DuplicatesQuery(QueryModel):
    """The kind of duplicates, and the page."""

    kind: Annotated[
        Literal["same", "near"], Field(description="`same`: the same content. `near`: nearly the same text.")
    ] = "same"
    limit: Annotated[int, Field(ge=1, le=100, description="The maximum number of groups per page.")] = 20
    cursor: DocumentsCursor | None = None
    dismissed: Annotated[
        bool, Field(description="With `near`, only the groups that someone has dismissed, or only the others.")
    ] = False


@router.get("/duplicates", summary="Find duplicates", dependencies=[READ, TURN])
def find_duplicates(services: ServicesDep, query: Annotated[DuplicatesQuery, Query()]) -> DuplicateList:
    """Return groups of documents with the same content, newest first, or with nearly the same text, most alike first.

    Documents inside others, such as attachments, do not count. With `near`, every two documents of a group are alike,
    and a document may be in several groups; kb compares documents for about a second per page, so that a page may be
    empty although others follow.
    """
    with services.store.view() as tx:
        if query.kind == "same":
            return same_content(tx, query.limit, query.cursor)
        found = scan(tx, query.cursor, query.limit, dismissed=query.dismissed)
        groups = [
            DuplicateGroup(
                documents=to_models(tx, group.documents[:SHOWN]), total=len(group.documents), shared=group.shared
            )
            for group in found.groups
        ]
    return DuplicateList(groups=groups, compared=found.compared, next_cursor=found.cursor)


@router.put(
    "/duplicates/dismissed", summary="Dismiss near duplicates", dependencies=[WRITE], responses=problems(404, 507)
)
def dismiss_duplicates(dismissal: Dismissal, services: ServicesDep) -> DismissedGroup:
    """Leave a group of near duplicates out of the list, because its documents differ on purpose, or show it again.

    kb also shows the group again if one of the documents changes, or if another one joins them.
    """
    with services.store.write() as tx:
        documents = [existing_document(tx, document_id) for document_id in dismissal.document_ids]
        tx.dismissals.set(pairs_of(documents), dismissed=dismissal.dismissed)
    return DismissedGroup(document_ids=dismissal.document_ids, dismissed=dismissal.dismissed)


def same_content(tx: Transaction, limit: int, cursor: str | None) -> DuplicateList:
    """Return a page of documents with the same content."""
    before = int(cursor.partition(".")[0]) if cursor else None
    page = tx.documents.repeated(limit=limit + 1, before=before)
    groups = [
        DuplicateGroup(
            documents=to_models(tx, tx.documents.having(content.content_hash, limit=SHOWN)),
            total=content.documents,
            shared=None,
        )
        for content in page[:limit]
    ]
    next_cursor = f"{page[limit - 1].newest}." if len(page) > limit else None
    return DuplicateList(groups=groups, compared=sum(group.total for group in groups), next_cursor=next_cursor)


@router.get(
    "/documents/{document_id}/compare/{other_id}",
    summary="Compare two documents",
    dependencies=[READ, TURN],
    responses=problems(404),
)
def compare_documents(document_id: Id, other_id: Id, services: ServicesDep) -> DocumentDiff:
    """Return the differences, word by word, from one document to another."""
    with services.store.view() as tx:
        texts = []
        for each in (document_id, other_id):
            existing_document(tx, each)
            texts.append("".join(chunk.text for chunk in tx.documents.chunks(each)))
    changes = [Change.model_validate(change) for change in diff(*texts)]
    return DocumentDiff(start=document_id, end=other_id, changes=changes)
