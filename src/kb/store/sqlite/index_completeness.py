"""Check that every chunk has its words and its vector; otherwise searches would miss chunks without an error."""

import logging

import apsw

logger = logging.getLogger(__name__)


def check_in_step(connection: apsw.Connection) -> None:
    """Compare the numbers and the sums of ids, which is as fast as reading them.

    Missing vectors are only logged: version 2 left chunks without a vector, and keyword search finds them.

    Raises:
        ValueError: the words belong to other chunks than the ones in the database, or the table `generation` is empty.
    """
    chunks = connection.execute("SELECT count(*), total(id) FROM chunks").get
    if connection.execute("SELECT count(*), total(id) FROM chunks_fts_docsize").get != chunks:
        raise ValueError("the keyword index does not match the passages")
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM generation)").get:
        raise ValueError("the counter of changes is missing")
    if connection.execute("SELECT count(*), total(rowid) FROM chunks_vec_rowids").get != chunks:
        logger.warning("vectors do not match the passages; run 'kb doctor --repair' while the engine is stopped")
