"""Whether what follows from the chunks is there for each of them: a search over less would pass for a right one."""

from __future__ import annotations

import logging

import apsw

logger = logging.getLogger(__name__)


def check_in_step(connection: apsw.Connection) -> None:
    """Compare the number and the sum of ids, which takes no more than reading them.

    A chunk without a vector, as version 2 left some, is found by its words.

    Raises:
        ValueError: words are not there for each chunk, or for what is none; or moments are not counted.
    """
    chunks = connection.execute("SELECT count(*), total(id) FROM chunks").get
    if connection.execute("SELECT count(*), total(id) FROM chunks_fts_docsize").get != chunks:
        raise ValueError("its words are not those of its chunks")
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM generation)").get:
        raise ValueError("its moments are not counted")
    if connection.execute("SELECT count(*), total(rowid) FROM chunks_vec_rowids").get != chunks:
        logger.warning("the vectors are not those of the chunks: run 'kb doctor --repair'")
