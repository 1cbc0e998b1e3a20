from __future__ import annotations

import pytest

from kb.embed.open import open_embedder
from kb.repair import named_model


@pytest.fixture(scope="module", autouse=True)
def model_opened_once(model_files, embedder):
    """Let imports and repairs share the open model. To open it takes half a second and 100 MB each time."""

    def open_once(model_dir, *options):
        return embedder if model_dir == model_files.onnx.parent else open_embedder(model_dir, *options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_model, "open_embedder", open_once)
        yield
