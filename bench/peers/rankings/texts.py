"""The input of a peer, which reads the texts from a folder and writes its rankings there.

PEER/bin/python -m bench.peers.rankings.texts PEER FOLDER TOP
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts with ids and unit vectors, shape (n, dimensions), and queries with theirs."""

    ids: list[str]
    texts: list[str]
    vectors: NDArray[np.float32]
    queries: list[str]
    query_vectors: NDArray[np.float32]

    def write(self, folder: Path) -> None:
        """Write all into a folder."""
        np.savez(folder / "vectors.npz", texts=self.vectors, queries=self.query_vectors)
        (folder / "texts.json").write_text(json.dumps([self.ids, self.texts, self.queries]))

    @classmethod
    def read(cls, folder: Path) -> Texts:
        """Return the written texts."""
        vectors = np.load(folder / "vectors.npz")
        ids, texts, queries = json.loads((folder / "texts.json").read_text())
        return cls(ids, texts, vectors["texts"], queries, vectors["queries"])


def main() -> None:
    """Rank."""
    peer, folder, top = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    found = import_module(f"bench.peers.rankings.{peer}").rank(Texts.read(folder), top)
    (folder / "rankings.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
