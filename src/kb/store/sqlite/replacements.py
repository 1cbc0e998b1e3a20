"""Documents in the place of others, in SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kb.store.sqlite.statements import statements
from kb.store.successors import nearest_successors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kb.store.row_mapping import Execute


def has_successors(execute: Execute) -> bool:
    """Return whether any document replaces another one, or ever did."""
    return bool(execute(statements("replacements")["has_links"]).get)


def successors(execute: Execute, ids: Iterable[int]) -> dict[int, list[int]]:
    """Return what replaced each of these documents, directly or in turn, and is there; the nearest first.

    What is in the bin is passed over. Documents that replace each other replace nothing.
    """
    wanted = sorted(ids)
    sql = statements("replacements")["select_links"]
    links: list[tuple[int, int, int]] = execute(sql, {"ids": json.dumps(wanted)}).fetchall()
    return nearest_successors(wanted, links)


def pass_on(execute: Execute, document_id: int, *, for_good: bool) -> None:
    """Let what replaces a document replace what that does; `for_good`, in former versions, too."""
    sql = statements("replacements")
    other: int | None = execute(sql["select_replaced"], {"id": document_id}).get
    for name in ("pass_on", "pass_on_former" if for_good else "pass_on_in_bin"):
        execute(sql[name], {"id": document_id, "other": other})
