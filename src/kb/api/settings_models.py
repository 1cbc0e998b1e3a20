"""Bodies for the settings of the engine."""

from typing import Annotated, Literal

from pydantic import Field

from kb.api.fields import Reply, Request

Source = Literal["environment", "saved", "default"]
MAX_VALUE = 1000
Text = Annotated[str, Field(max_length=MAX_VALUE)]


class SettingsChange(Request):
    """New values of settings. Settings that are absent stay as they are; null restores the default."""

    ocr: Annotated[Text | None, Field(description="0, 1, or the languages of Tesseract, such as eng+deu.")] = None
    inbox_dir: Annotated[Text | None, Field(description="The full path of the inbox folder.")] = None
    backup_dir: Annotated[Text | None, Field(description="The full path of the backup folder.")] = None
    backup_hours: Annotated[float | None, Field(ge=0.1, le=8760, description="How many hours between backups.")] = None
    backup_keep: Annotated[int | None, Field(ge=1, le=10_000, description="The number of backups to keep.")] = None


class Setting(Reply):
    """A setting, its value as written in the environment, and its source.

    A value is null if it is not set, or if it is secret (`is_secret`). `fault` says why kb does not use the value.
    """

    name: str
    variable: str
    value: str | None
    is_secret: bool
    source: Source
    changeable: bool
    about: str
    fault: str | None


class SettingList(Reply):
    """The settings of the engine. `file` contains the saved ones.

    `keyed` says whether kb requires a key; `reachable`, whether other machines may connect.
    """

    settings: list[Setting]
    file: str
    keyed: bool
    reachable: bool
