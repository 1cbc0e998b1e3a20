"""Settings: each is the environment variable `KB_` + its name (requirement R-3).

Names are in capitals, as the shell has them. Here are the engine's, and what the settings of every app are made of.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from kb.api.errors import SettingError
from kb.running_engine import data_folder

MESSAGES: Final = {"int_parsing": "it must be a whole number", "float_parsing": "it must be a number"}
"""What a person is told of an error, by pydantic's name of it."""

SQLITE: Final = "sqlite:///"
WHERE_IN_POSTGRES: Final = ("host", "hostaddr", "port", "dbname")
"""The options of a URL that say which database it is."""


class EnvSettings(BaseModel):
    """A group of settings; an empty variable counts as unset."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the settings that `environment` holds.

        Raises:
            SettingError: a value is wrong; one line that names the variable and never quotes its value.
        """
        given = {name: value for name in cls.model_fields if (value := environment.get(variable(name)))}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            message = MESSAGES.get(first["type"], first["msg"])
            raise SettingError(f"{variable(str(first['loc'][0]))}: {message}") from None


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"KB_{name.upper()}"


def with_flags(environment: Mapping[str, str], /, **flags: object) -> Mapping[str, str]:
    """Return `environment` with the flags that are given in the place of their variables."""
    return {**environment, **{variable(name): str(value) for name, value in flags.items() if value is not None}}


def listed(names: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]


def key_text(text: str) -> str:
    """Return a key as it is sent in a header, without the white space around it.

    Raises:
        ValueError: it holds what headers do not; the message never quotes it.
    """
    key = text.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("a key holds only visible ASCII characters")
    return key


def _key(value: object) -> object:
    return key_text(value) if isinstance(value, str) else value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise ValueError("must hold no user and password: the URL is shown to those who ask, and KB_API_KEY is the key")
    return value


Key = Annotated[SecretStr, BeforeValidator(_key)]
Url = Annotated[str, AfterValidator(_url)]
UserPath = Annotated[Path, AfterValidator(Path.expanduser)]


def reveal(secret: SecretStr | None) -> str | None:
    """Return the text of a secret that may be unset."""
    return secret.get_secret_value() if secret else None


class EngineKey(EnvSettings):
    """What opens the HTTP API, for who asks for it and for who sends it.

    Args:
        api_key: the key of the HTTP API; without one it is open.
        api_key_file: a file with such keys, one a line, read again when it changes. Where KB_API_KEY is not set, the
            gateway sends the first of them.
    """

    api_key: Key | None = None
    api_key_file: UserPath | None = None

    @property
    def has_key(self) -> bool:
        """Whether a key is needed."""
        return bool(self.api_key or self.api_key_file)


class EngineAccess(EngineKey):
    """Who may call the HTTP API, and what else shows the engine.

    Args:
        allowed_hosts: names besides localhost that it may be called by without a key, and whose pages may call it, with
            commas between them; pages at another port than the usual one with that port, as in `localhost:5173`.
    """

    allowed_hosts: str = ""


class Settings(EngineAccess):
    """What the engine can be told.

    Args:
        data_dir: where the database, the model and staged files are kept.
        database_url: another database than `sqlite:///<data_dir>/kb.db`.
        database_read_url: replicas of the database in PostgreSQL, which searches, lists and documents are read from.
        blob_url: where uploaded files are, if not in PostgreSQL itself: `s3://bucket/prefix`, or a folder that all
            engines share, as in `file:///srv/kb`. The variables of Amazon S3 say the rest: `AWS_ACCESS_KEY_ID`,
            `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.
        model_dir: a folder with the model, for machines that reach no package index, or with another model.
        device: where the model runs.
        precision: in which arithmetic: fp16 is for GPUs, int8 for CPUs, bf16 for OpenVINO. auto is int8 for a new
            database on a CPU with the instructions for it, and else fp32. Vectors of all precisions are comparable.
        keep_files: keep what was uploaded, so that it can be downloaded again.
        keep_jobs_days: for how many days done jobs are listed, and their idempotency keys known; 0 is for ever. What
            they made stays, and so do failed jobs.
        bin_days: for how many days what was deleted can be restored; 0 deletes for good at once.
        history_days: for how many days former versions of documents are kept; 0 keeps none.
        history_mb: how much former versions may take in the database, in MiB; the oldest give way.
        max_upload_mb: the largest request body, in MiB.
        parse_seconds: how long reading one file may take.
        parse_memory_mb: how much memory that may take, in MiB.
        parse_pages: how many pages one file may have.
        extractors: what reads files that kb has no reader for, such as pictures: `TYPE=COMMAND` or `TYPE=ADDRESS`, with
            semicolons between them.
        extractors_unconfined: run extractors even on a system that cannot keep them from your files, as Linux can.
        extract_seconds: how long extractors may take over one file.
        ocr: read pictures and scans with Tesseract: `1`, or the languages, such as `eng+deu`.
        inbox_dir: a folder whose files the engine takes in by itself.
        index_ratio: how many times its size one file may take in the database, beside 400 kB.
        own_tags: give documents the tags that their files ask for.
        max_note_chars: the longest note.
        max_top: the most results of a search.
        max_searches: how many searches may run or wait; who comes later is told to try again.
        max_wait_seconds: how long a request may wait for a job.
        workers: whether this engine does jobs: 1, or 0 if other engines or `kb worker` do them, over PostgreSQL.
        words_memory_mb: how much memory the words of the full text may take, in MiB; those that were not searched for
            longest give way.
        audit_days: for how many days the audit log says who changed what.
        backup_dir: a folder for backups, which the engine makes by itself if this is set.
        backup_hours: how many hours lie between two of them.
        backup_keep: how many of them stay.
        backup_key: a secret that seals backups. `kb backup restore` then refuses a backup that somebody changed. Keep
            the key elsewhere than the backups.
    """

    data_dir: UserPath = Field(default_factory=data_folder)
    database_url: str | None = None
    database_read_url: str | None = None
    blob_url: str | None = None
    model_dir: UserPath | None = None
    device: Literal["auto", "cpu", "cuda", "rocm"] = "auto"
    precision: Literal["auto", "fp32", "fp16", "int8", "bf16"] = "auto"
    keep_files: bool = True
    keep_jobs_days: Annotated[int, Field(ge=0)] = 30
    bin_days: Annotated[int, Field(ge=0, le=36_500)] = 30
    history_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    history_mb: Annotated[int, Field(ge=1)] = 1024
    audit_days: Annotated[int, Field(ge=1, le=36_500)] = 365
    max_upload_mb: Annotated[int, Field(ge=1)] = 512
    parse_seconds: Annotated[float, Field(gt=0)] = 120
    parse_memory_mb: Annotated[int, Field(ge=64)] = 2048
    parse_pages: Annotated[int, Field(ge=1)] = 5000
    extractors: str = ""
    extractors_unconfined: bool = False
    extract_seconds: Annotated[float, Field(gt=0)] = 600
    ocr: str = ""
    inbox_dir: UserPath | None = None
    index_ratio: Annotated[float, Field(ge=4)] = 20
    own_tags: bool = True
    max_note_chars: Annotated[int, Field(ge=1)] = 1_000_000
    max_top: Annotated[int, Field(ge=1)] = 100
    max_searches: Annotated[int, Field(ge=1)] = 128
    max_wait_seconds: Annotated[int, Field(ge=0)] = 60
    workers: Annotated[int, Field(ge=0, le=1)] = 1
    words_memory_mb: Annotated[int, Field(ge=1)] = 256
    backup_dir: UserPath | None = None
    backup_hours: Annotated[float, Field(gt=0)] = 24
    backup_keep: Annotated[int, Field(ge=1)] = 7
    backup_key: Key | None = None

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
        if self.database_url in (None, f"{SQLITE}{self.data_dir / 'kb.db'}"):
            return self.data_dir
        url = str(self.database_url)
        if url.startswith("postgres"):
            url = _place_in_postgres(url)
        return self.data_dir / "databases" / sha256(url.encode()).hexdigest()[:16]


def _place_in_postgres(url: str) -> str:
    """Return a URL without what may change while the database stays the same: who connects, and how."""
    place, _, options = url.partition("://")[2].partition("?")
    server, slash, database = place.partition("/")
    where = [option for option in options.split("&") if option.partition("=")[0] in WHERE_IN_POSTGRES]
    address = f"postgresql://{server.rpartition('@')[2]}{slash}{database}"
    return f"{address}?{'&'.join(where)}" if where else address
