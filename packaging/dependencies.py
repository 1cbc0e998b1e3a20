"""Tell hatchling what kb needs.

pyproject.toml lists it once, by group, so that each image can take only its own groups.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

ALWAYS: Final = ("command", "engine", "gateway", "web", "cpu")
EXTRAS: Final = ("cuda", "rocm", "openvino", "export", "postgres", "s3", "otel")


class Dependencies(MetadataHookInterface):
    """hatchling calls it for each build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the dependencies and the extras."""
        groups = tomllib.loads(Path(self.root, "pyproject.toml").read_text())["dependency-groups"]
        metadata["dependencies"] = sorted({each for group in ALWAYS for each in groups[group]})
        metadata["optional-dependencies"] = {group: groups[group] for group in EXTRAS}
