"""Documents in the place of others, in SQL; `sql` are the statements about replacements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kb.store.row_mapping import Execute


def has_successors(execute: Execute, sql: Mapping[str, str]) -> bool:
    """Return whether any document replaces another one, or ever did."""
    return bool(execute(sql["has_links"]).get)


def successors(execute: Execute, sql: Mapping[str, str], ids: Iterable[int]) -> dict[int, list[int]]:
    """Return what replaced each of these documents, directly or in turn, and is there; the nearest first.

    What is in the bin is passed over. Documents that replace each other replace nothing.
    """
    replaced_ids = sorted(ids)
    links: list[tuple[int, int, bool]] = execute(sql["select_links"], {"ids": replaced_ids}).fetchall()
    present = {later for _, later, is_there in links if is_there}
    direct: dict[int, list[int]] = {}
    for later, replaced in {later: replaced for replaced, later, _ in links}.items():
        direct.setdefault(replaced, []).append(later)
    nearest = {id_: [later for later in _after(id_, direct) if later in present] for id_ in replaced_ids}
    return {id_: later for id_, later in nearest.items() if later}


def _after(document_id: int, direct: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the direct and indirect successors of a document, the nearest first; none if it is one of its own.

    As each document replaces one at most, no other circle can be come to.
    """
    chain = [*direct.get(document_id, ())]
    for later in chain:
        if later == document_id:
            return []
        chain += direct.get(later, ())
    return chain


def pass_on(execute: Execute, sql: Mapping[str, str], document_id: int, *, for_good: bool) -> None:
    """Let what replaces a document replace what that does; `for_good`, in former versions, too."""
    other: int | None = execute(sql["select_replaced"], {"id": document_id}).get
    for name in ("pass_on", "pass_on_former" if for_good else "pass_on_in_bin"):
        execute(sql[name], {"id": document_id, "other": other})
