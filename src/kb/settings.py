"""Settings: each is the environment variable `KB_` + its name (requirement R-3).

The names of variables are in capitals. This module has the engine's settings and the base class of all settings.
"""

import inspect
import json
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from kb.api.errors import SettingError
from kb.api.limits import MAX_TOP, MAX_UPLOAD_MB
from kb.api.store_kinds import SETTING, StoreKind, not_a_database, store_kind
from kb.running_engine import FIRST_KEY, data_folder

logger = logging.getLogger(__name__)

MESSAGES: Final = {"int_parsing": "it must be a whole number", "float_parsing": "it must be a number"}
"""Messages for people, by the error types of pydantic."""

SAVED: Final = "settings.json"
"""The file in the data folder with the settings that were changed while the engine ran. Variables override them."""

QUOTES: Final = ("'", '"')

CHANGEABLE: Final = ("ocr", "inbox_dir", "backup_dir", "backup_hours", "backup_keep")
"""The names of these settings."""


class EnvSettings(BaseModel):
    """A group of settings; an empty variable counts as unset."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the settings from `environment`.

        Raises:
            SettingError: a value is wrong; the message names the variable and never quotes its value.
        """
        given = {name: value for name in cls.model_fields if (value := environment.get(variable(name), "").strip())}
        refuse_quotes(given)
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            message = MESSAGES.get(first["type"], first["msg"]).removeprefix("Value error, ")
            raise SettingError(f"{variable(str(first['loc'][0]))}: {message}") from None

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return the description of each setting, from `Args:` in the docstrings."""
        entries = "\n".join((inspect.getdoc(each) or "").partition("Args:\n")[2] for each in cls.__mro__)
        found = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", entries)
        return {name: " ".join(text.split()) for name, text in found}


def refuse_quotes(values: Mapping[str, str]) -> None:
    """Refuse values in quotes, which `docker run --env-file` and some service managers keep; keys only get a warning.

    Raises:
        SettingError: a folder, for example, would get another name.
    """
    for name in (name for name, value in values.items() if _is_quoted(value)):
        if not name.endswith("_key"):
            raise SettingError(f"{variable(name)}: remove the quotes; here they would become part of the value")
        warn_of_quotes(variable(name))


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] and text[0] in QUOTES


@cache
def warn_of_quotes(place: object) -> None:
    """Log once that quotes are a part of a key."""
    logger.warning("%s: a key is in quotes, and they are part of it. Remove them if you did not mean that", place)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"KB_{name.upper()}"


def with_flags(environment: Mapping[str, str], /, **flags: object) -> Mapping[str, str]:
    """Return `environment` with the given flags, which override their variables."""
    return {**environment, **{variable(name): str(value) for name, value in flags.items() if value is not None}}


def listed(names: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in names.split(",") if name.strip()]


def key_text(text: str) -> str:
    """Return a key without surrounding white space, ready for a header.

    Raises:
        ValueError: the key has characters that a header cannot have; the message never quotes the key.
    """
    key = text.strip()
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("a key may contain only visible ASCII characters, without spaces")
    return key


def keys_in(path: Path) -> list[str]:
    """Return the keys in a file, one per line, without comments. A mark of the encoding at its begin does not matter.

    Raises:
        OSError: the file cannot be read.
        ValueError: it contains no key, or something that cannot be one.
    """
    raw = path.read_bytes()
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    lines = map(str.strip, raw.decode(encoding).splitlines())
    keys = [key_text(line) for line in lines if line and not line.startswith("#")]
    if not keys:
        raise ValueError(f"{path} contains no key")
    if any(map(_is_quoted, keys)):
        warn_of_quotes(path)
    return keys


def _key(value: object) -> object:
    return key_text(value) if isinstance(value, str) else value


def _folder(path: Path) -> Path:
    if path.parts[:1] and path.parts[0].startswith("$"):
        raise ValueError("variables such as $HOME are not expanded here: write out the path, or start it with ~")
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("there is no account of that name: write out the path") from None


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise ValueError("must not contain a user or password, because kb shows this URL; set KB_API_KEY instead")
    return value


Key = Annotated[SecretStr, BeforeValidator(_key)]
Url = Annotated[str, AfterValidator(_url)]
UserPath = Annotated[Path, AfterValidator(_folder)]
Word = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""A word that may be in capitals."""


def reveal(secret: SecretStr | None) -> str | None:
    """Return the text of a secret that may be unset."""
    return secret.get_secret_value() if secret else None


class EngineKey(EnvSettings):
    """The API key, which the engine requires and clients send.

    Args:
        api_key: the key of the HTTP API. Without a key, the API is open.
        api_key_file: a file with API keys, one per line. kb reads it again when it changes. If KB_API_KEY is not set,
            the gateway sends the first key in the file.
    """

    api_key: Key | None = None
    api_key_file: UserPath | None = None


class EngineAccess(EngineKey):
    """The access to the HTTP API.

    Args:
        allowed_hosts: comma-separated host names, in addition to localhost, that clients without a key may use, and
            whose web pages may call the API. Add the port if it is not 80 or 443, as in `localhost:5173`.
    """

    allowed_hosts: str = ""


class Settings(EngineAccess):
    """The settings of the engine.

    Args:
        data_dir: the data folder, with the database, the model and files in progress.
        database_url: the database, if it is not `sqlite:///<data_dir>/kb.db`.
        database_read_url: PostgreSQL replicas, which kb uses for searches, lists and documents.
        blob_url: the storage of uploaded files, if it is not PostgreSQL itself: `s3://bucket/prefix`, or a folder that
            all engines share, as in `file:///srv/kb`. For S3, also set `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
            `AWS_REGION` and `AWS_ENDPOINT_URL`.
        model_dir: a folder with the embedding model, for another model or a machine without a package index.
        device: the device that runs the model.
        precision: the arithmetic of the model: fp16 for GPUs, int8 for CPUs, bf16 for OpenVINO. With auto, a new
            database uses int8 if the CPU has instructions for it, otherwise fp32. Vectors of all precisions are
            comparable.
        keep_files: keep uploaded files, so that you can download them again.
        keep_jobs_days: the number of days for which kb lists done jobs and knows their idempotency keys; 0 means
            forever.
            Their documents stay, and so do failed jobs.
        bin_days: the number of days for which you can restore deleted documents; 0 purges them at once.
        history_days: the number of days for which kb keeps earlier versions of documents; 0 keeps none.
        history_mb: the space for earlier versions in the database, in MiB. kb deletes the oldest versions first.
        max_upload_mb: the largest request body, in MiB.
        parse_seconds: the time limit for reading one file, in seconds.
        parse_memory_mb: the memory limit for reading one file, in MiB.
        extractors: programs for files that kb cannot read itself, such as pictures: `TYPE=COMMAND` or `TYPE=ADDRESS`,
            separated by semicolons.
        extractors_unconfined: run extractors even if this system, unlike Linux, cannot keep them from your files.
        extract_seconds: the time limit for running extractors on one file, in seconds.
        ocr: read pictures and scans with Tesseract: `1`, or its languages, such as `eng+deu`.
        inbox_dir: a folder from which the engine adds files automatically.
        notes_dir: a folder with a Markdown file of each note. kb writes changed notes there, and applies changed, new
            and deleted files to the notes.
        notes_id: write the id of each note to its file in the notes folder, as a field `kb`, so that another machine
            with a copy of the database recognises the files even if they were renamed and changed.
        index_ratio: the maximum size of one file in the database, as a multiple of its own size, in addition to 400 kB.
        own_tags: give documents the tags that their files contain.
        max_note_chars: the maximum length of a note, in characters.
        max_top: the maximum number of results for a search.
        max_searches: the number of searches that may run or wait. kb refuses further searches (503).
        max_wait_seconds: the longest time that a request may wait for a job, in seconds.
        workers: 1 if this engine processes jobs; 0 if, with PostgreSQL, only other engines or `kb worker` do.
        words_memory_mb: the memory for the words of the full text, in MiB. kb first drops the words that have
            not been searched for the longest time.
        audit_days: the number of days for which the audit log keeps its records of changes.
        trusted_header: the header in which your proxy names the key of the person it has signed in, such as
            Remote-User. The web interface then asks for no key. `FORWARDED_ALLOW_IPS` must name the proxy, and
            `KB_ALLOWED_HOSTS` the host names.
        backup_dir: a folder for backups. If it is set, the engine makes backups automatically.
        backup_hours: the number of hours between two backups.
        backup_keep: the number of backups that kb keeps.
        backup_key: a secret that seals backups. `kb backup restore` then refuses a backup that somebody changed. Keep
            this key somewhere other than the backups.
    """

    data_dir: UserPath = Field(default_factory=data_folder)
    database_url: str | None = None
    database_read_url: str | None = None
    blob_url: str | None = None
    model_dir: UserPath | None = None
    device: Annotated[Literal["auto", "cpu", "cuda", "rocm"], Word] = "auto"
    precision: Annotated[Literal["auto", "fp32", "fp16", "int8", "bf16"], Word] = "auto"
    keep_files: bool = True
    keep_jobs_days: Annotated[int, Field(ge=0)] = 30
    bin_days: Annotated[int, Field(ge=0, le=36_500)] = 30
    history_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    history_mb: Annotated[int, Field(ge=1)] = 1024
    audit_days: Annotated[int, Field(ge=1, le=36_500)] = 365
    max_upload_mb: Annotated[int, Field(ge=1)] = MAX_UPLOAD_MB
    parse_seconds: Annotated[float, Field(gt=0)] = 120
    parse_memory_mb: Annotated[int, Field(ge=64)] = 2048
    extractors: str = ""
    extractors_unconfined: bool = False
    extract_seconds: Annotated[float, Field(gt=0)] = 600
    ocr: str = ""
    inbox_dir: UserPath | None = None
    notes_dir: UserPath | None = None
    notes_id: bool = False
    index_ratio: Annotated[float, Field(ge=4)] = 20
    own_tags: bool = True
    max_note_chars: Annotated[int, Field(ge=1)] = 1_000_000
    max_top: Annotated[int, Field(ge=1)] = MAX_TOP
    max_searches: Annotated[int, Field(ge=1)] = 128
    max_wait_seconds: Annotated[int, Field(ge=0)] = 60
    workers: Annotated[int, Field(ge=0, le=1)] = 1
    words_memory_mb: Annotated[int, Field(ge=1)] = 256
    trusted_header: str | None = None
    backup_dir: UserPath | None = None
    backup_hours: Annotated[float, Field(gt=0)] = 24
    backup_keep: Annotated[int, Field(ge=1)] = 7
    backup_key: Key | None = None

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the settings from `environment`, and from the file of saved settings.

        Raises:
            SettingError: a value is wrong, or the file cannot be read.
        """
        own = super().read(environment)
        store_kind(own.database_url)  # refuses it before the file of saved settings could be blamed
        try:
            return cls.read_with(own.saved(), environment)
        except SettingError as error:
            raise SettingError(f"{own.data_dir / SAVED}: {error.detail}") from None

    @classmethod
    def read_with(cls, saved: Mapping[str, str], environment: Mapping[str, str]) -> Self:
        """Return the settings from `environment`, and for the rest from saved settings by name.

        Raises:
            SettingError: a value is wrong.
        """
        given = {name: value for name, value in environment.items() if value.strip()}
        return super().read({variable(name): value for name, value in saved.items()} | given)

    def saved(self) -> dict[str, str]:
        """Return the saved settings that apply to this kind of database, by name.

        Raises:
            SettingError: the file cannot be read.
        """
        path = self.data_dir / SAVED
        try:
            values = json.loads(path.read_bytes())
            named = {str(name): str(value) for name, value in values.items() if name in CHANGEABLE}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise SettingError(f"it cannot be read: {error}") from None
        return {name: value for name, value in named.items() if name in self.changeable}

    @property
    def changeable(self) -> tuple[str, ...]:
        """The names of the settings that may change while the engine runs. A shared database has its own backups."""
        is_shared = self.store_kind.is_shared
        return tuple(name for name in CHANGEABLE if not (is_shared and name.startswith("backup_")))

    @property
    def store_kind(self) -> StoreKind:
        return store_kind(self.database_url)

    @property
    def database_path(self) -> Path:
        """The file of the database.

        Raises:
            SettingError: the database is not in a file. The message quotes only the beginning of the URL, which may
                contain a password.
        """
        url, kind = self.database_url, self.store_kind
        if not url:
            return self.data_dir / "kb.db"
        if kind.is_shared:
            raise SettingError(
                f"{SETTING}: this command works only with a database in a file. For {kind.title}, use its own tools,"
                f" such as {kind.own_tools}."
            )
        scheme, _, rest = url.partition("://")
        path = rest.removeprefix("/")
        if path in (rest, ""):
            raise not_a_database(url)
        if Path(path).is_dir():
            file = f"{scheme}:///{path.rstrip('/')}/kb.db"
            raise SettingError(f"{SETTING}: {path} is a folder. Name a file in it, such as {file}.")
        return Path(path)

    @property
    def first_key(self) -> Path:
        return self.data_dir / FIRST_KEY

    @property
    def has_key(self) -> bool:
        """Whether the API requires a key: from the settings, or the first key as soon as it exists."""
        return bool(self.api_key or self.api_key_file) or self.first_key.exists()

    @property
    def staging_dir(self) -> Path:
        """The folder of uploaded files that wait for their jobs."""
        return self._files_of_database / "staging"

    @property
    def files_dir(self) -> Path:
        """The folder of kept files."""
        return self._files_of_database / "files"

    @property
    def thumbnails_dir(self) -> Path:
        """The folder of thumbnails, which kb can make again."""
        return self._files_of_database / "thumbnails"

    @property
    def _files_of_database(self) -> Path:
        """The folder of this database's files. Another database has its own, and must not treat these as leftovers."""
        if self.database_url in (None, f"sqlite:///{self.data_dir / 'kb.db'}"):
            return self.data_dir
        identity = self.store_kind.identify(str(self.database_url))
        return self.data_dir / "databases" / sha256(identity.encode()).hexdigest()[:16]
