"""The space of the default model, and the error for a database with vectors of another model."""

from kb.store.rows import VectorSpace

DEFAULT_SPACE = VectorSpace(
    dimensions=384,
    model="all-MiniLM-L6-v2",
    precision="fp32",
    digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
"""The space of every database that records none."""


def refusal(database: str, recorded: VectorSpace, space: VectorSpace) -> str:
    """Return in one line why kb does not open a database for vectors of `space`, and the remedy."""
    remedy = f"set KB_MODEL_DIR to the folder of {recorded.model}, which computed them"
    if recorded == DEFAULT_SPACE:
        remedy = "unset KB_MODEL_DIR"
    return (
        f"{database} has vectors of {recorded}, but the model computes vectors of {space}. While the engine is stopped,"
        f" run 'kb reembed', which recomputes all vectors, or {remedy}."
    )
