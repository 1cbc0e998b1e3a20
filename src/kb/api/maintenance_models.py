"""Requests and replies about new embeddings."""

from pydantic import Field

from kb.api.fields import ReembedAction, ReembedState, Reply, Request


class ReembedRequest(Request):
    """The action on the second set of vectors, next to those in use."""

    action: ReembedAction = Field(
        description="`start` computes vectors with the model from the settings, and switches to them when all are done;"
        " `stop` pauses this and `resume` continues it; `rollback` discards them, or returns to the earlier vectors;"
        " `finish` deletes the earlier vectors."
    )
    model: str | None = Field(
        None,
        max_length=1000,
        description="With `start`: the model to use, by its name in `GET /models`, as `owner/name` on the model hub, or"
        " as the path of a folder or a packed model on kb's machine. kb installs it first.",
    )


class Reembedding(Reply):
    """The vectors in use, the vectors that the settings require, and a second set, each by model and prefix.

    `state` is the state of the second set: kb is computing it (`building`), has stopped, keeps it because it was in use
    earlier (`kept`), or is returning to it. `done` of `total` vectors are computed; an earlier version counts as one.
    `step` is how far the installation of a model is. `error` is the reason if the work does not continue.
    """

    in_use: str
    wanted: str
    other: str | None
    state: ReembedState | None
    done: int
    total: int
    step: str | None
    error: str | None


class Model(Reply):
    """A model that kb can use.

    `quality` is a published figure, and `source` the page that has it. `passages_per_second` is measured here for the
    model in use, and estimated from that for the others; `seconds` is the time for the vectors of all passages.
    """

    name: str
    repository: str | None
    languages: str
    dimensions: int
    licence: str
    megabytes: int
    quality: str
    source: str
    is_in_use: bool
    is_installed: bool
    passages_per_second: float | None
    seconds: float | None


class ModelList(Reply):
    """The models by name, and the number of passages of which each would compute the vectors."""

    passages: int
    models: list[Model]
