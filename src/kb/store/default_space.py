"""The default model's vectors, and how a database with those of another one is refused."""

from __future__ import annotations

from kb.store.rows import VectorSpace

DEFAULT_SPACE = VectorSpace(
    dimensions=384,
    model="all-MiniLM-L6-v2",
    precision="fp32",
    digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""That of every database that records none."""


def refusal(database: str, recorded: VectorSpace, space: VectorSpace) -> str:
    """Return in one line why a database is not opened for vectors of `space`, with the remedy."""
    remedy = f"set KB_MODEL_DIR to the folder of {recorded.model} that it was made with"
    if recorded == DEFAULT_SPACE:
        remedy = "unset KB_MODEL_DIR"
    return (
        f"{database} holds vectors of {recorded}, and the model makes those of {space}: run 'kb reembed',"
        f" which makes them anew while the engine is stopped, or {remedy}."
    )
