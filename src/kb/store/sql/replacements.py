"""Documents that replace others."""

from collections.abc import Iterable, Mapping, Sequence


def present_successors(ids: Iterable[int], links: Sequence[tuple[int, int, bool]]) -> dict[int, list[int]]:
    """Return the direct and indirect replacements of each document that exist, the nearest first.

    Documents that replace each other count as replacing nothing.

    Args:
        links: documents, each with its replacement and whether the replacement exists.
    """
    present = {later for _, later, is_there in links if is_there}
    direct: dict[int, list[int]] = {}
    for later, replaced in {later: replaced for replaced, later, _ in links}.items():
        direct.setdefault(replaced, []).append(later)
    nearest = {id_: [later for later in _after(id_, direct) if later in present] for id_ in ids}
    return {id_: later for id_, later in nearest.items() if later}


def _after(document_id: int, direct: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the direct and indirect successors of a document, the nearest first; empty if it succeeds itself.

    Each document replaces at most one, so the search cannot reach any other circle.
    """
    chain = [*direct.get(document_id, ())]
    for later in chain:
        if later == document_id:
            return []
        chain += direct.get(later, ())
    return chain
