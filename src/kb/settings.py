"""The engine's settings (requirement R-3): each is the environment variable `KB_` + its name."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kb.api.settings import EnvSettings, Key


def default_data_dir() -> Path:
    """`$XDG_DATA_HOME/kb`, or `~/.local/share/kb`."""
    import os

    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kb"


class Settings(EnvSettings):
    """What the engine can be told.

    Args:
        data_dir: where the database, the model and staged files are kept.
        database_url: another database than `sqlite:///<data_dir>/kb.db`.
        api_key: the key that clients must send; without one the API is open.
        allowed_hosts: names besides localhost that an open API may be called by, with commas between them.
        model_dir: a folder with the model, for machines that reach no package index, or with another model.
        device: where the model runs.
        precision: in which arithmetic: fp16 is for GPUs, int8 for CPUs, bf16 for OpenVINO; auto is fp32. A database
            keeps to one.
        keep_files: keep what was uploaded, so that it can be downloaded again.
        keep_jobs_days: for how many days done jobs are listed, and their idempotency keys known; 0 is for ever. What
            they made stays, and so do failed jobs.
        max_upload_mb: the largest request body, in MiB.
        parse_seconds: how long reading one file may take.
        parse_memory_mb: how much memory that may take, in MiB.
        parse_output_mb: how much text one file may hold, in MiB.
        parse_pages: how many pages one file may have.
        max_note_chars: the longest note.
        max_tags: how many tags a request may name.
        max_tag_chars: the longest tag.
        max_top: the most results of a search.
        max_page: the most rows of a page.
        max_wait_seconds: how long a request may wait for a job.
    """

    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Field(default_factory=default_data_dir)
    database_url: str | None = None
    api_key: Key | None = None
    allowed_hosts: str = ""
    model_dir: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    device: Literal["auto", "cpu", "cuda", "rocm"] = "auto"
    precision: Literal["auto", "fp32", "fp16", "int8", "bf16"] = "auto"
    keep_files: bool = True
    keep_jobs_days: Annotated[int, Field(ge=0)] = 30
    max_upload_mb: Annotated[int, Field(ge=1)] = 512
    parse_seconds: Annotated[float, Field(gt=0)] = 120
    parse_memory_mb: Annotated[int, Field(ge=64)] = 2048
    parse_output_mb: Annotated[int, Field(ge=1)] = 64
    parse_pages: Annotated[int, Field(ge=1)] = 5000
    max_note_chars: Annotated[int, Field(ge=1)] = 1_000_000
    max_tags: Annotated[int, Field(ge=1)] = 100
    max_tag_chars: Annotated[int, Field(ge=1)] = 200
    max_top: Annotated[int, Field(ge=1)] = 100
    max_page: Annotated[int, Field(ge=1)] = 500
    max_wait_seconds: Annotated[int, Field(ge=0)] = 60

    @property
    def staging_dir(self) -> Path:
        """Where uploaded files wait for their job."""
        return self._files_of_database / "staging"

    @property
    def files_dir(self) -> Path:
        """Where uploaded files are kept."""
        return self._files_of_database / "files"

    @property
    def _files_of_database(self) -> Path:
        """Files belong to a database: another one has others, and must not take these for leftovers."""
        if self.database_url in (None, f"sqlite:///{self.data_dir / 'kb.db'}"):
            return self.data_dir
        return self.data_dir / "databases" / sha256(str(self.database_url).encode()).hexdigest()[:16]
