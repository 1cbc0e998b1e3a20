"""Documents in the place of others, in SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from kb.store.sqlite.row_mapping import Execute, moment
from kb.store.sqlite.statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

FOREVER: Final = "9999"
"""Later than every moment that is stored."""


def successors(execute: Execute, ids: Iterable[int], instant: datetime | None = None) -> dict[int, list[int]]:
    """Return what replaced each of these documents, directly or in turn, and is there; the nearest first.

    What is in the bin is passed over. Documents that replace each other replace nothing.
    """
    wanted = sorted(ids)
    at = {"ids": json.dumps(wanted), "moment": moment(instant) if instant else FOREVER}
    links: list[tuple[int, int, int]] = execute(statements("replacements")["select_links"], at).fetchall()
    there = {later for _, later, is_there in links if is_there}
    direct: dict[int, list[int]] = {}
    for replaced, later, _ in links:
        direct.setdefault(replaced, []).append(later)
    found = {each: _reached(direct, each) for each in wanted if each in direct}
    return {
        each: present
        for each, later in found.items()
        if each not in later and (present := [id_ for id_ in later if id_ in there])
    }


def pass_on(execute: Execute, document_id: int, *, for_good: bool) -> None:
    """Let what replaces a document replace what that does; `for_good`, in former versions, too."""
    sql = statements("replacements")
    other: int | None = execute(sql["select_replaced"], {"id": document_id}).get
    for name in ("pass_on", "pass_on_former" if for_good else "pass_on_in_bin"):
        execute(sql[name], {"id": document_id, "other": other})


def _reached(direct: Mapping[int, Sequence[int]], start: int) -> list[int]:
    """Return what can be reached by links, the nearest first."""
    reached = dict.fromkeys(direct[start])
    queue = list(reached)
    for each in queue:
        new = [later for later in direct.get(each, ()) if later not in reached]
        reached |= dict.fromkeys(new)
        queue += new
    return queue
