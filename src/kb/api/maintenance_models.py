"""Requests and replies about new embeddings."""

from pydantic import Field

from kb.api.fields import ReembedAction, ReembedState, Reply, Request


class ReembedRequest(Request):
    """The action on the second set of vectors, next to those in use."""

    action: ReembedAction = Field(
        description="`start` computes vectors with the model of the settings, and switches to them when all are done;"
        " `stop` pauses this and `resume` continues it; `rollback` discards them, or returns to the earlier vectors;"
        " `finish` deletes the earlier vectors."
    )


class Reembedding(Reply):
    """The vectors in use, the vectors that the settings require, and a second set, each by model and prefix.

    `state` is the state of the second set: kb is computing it (`building`), has stopped, keeps it because it was in use
    earlier (`kept`), or is returning to it. `done` of `total` vectors are computed; an earlier version counts as one.
    `error` is the reason if the work does not continue.
    """

    in_use: str
    wanted: str
    other: str | None
    state: ReembedState | None
    done: int
    total: int
    error: str | None
