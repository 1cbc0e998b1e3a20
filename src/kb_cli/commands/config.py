"""kb config."""

from typing import Annotated, Any

from kb_cli.runtime import output
from kb_cli.runtime.config import SECRETS, config_path, load_config
from kb_cli.runtime.engine_call import call
from kb_cli.runtime.options import Json, option

MASK = "••••"
SHOWN_CHARACTERS = 2
MIN_SHOWN_LENGTH = 12


def config(
    engine: Annotated[
        bool, option("--engine", "Show the engine's settings (requires a key with the admin right).")
    ] = False,
    json: Json = False,
) -> None:
    """Show the settings of the command line or the engine, and their sources.

    kb shows only the last characters of keys. You can change some of the engine's settings on the web interface's
    Settings page.
    """
    if engine:
        answer = call(lambda client: client.settings())
        output.print_list(answer, "settings", {"SETTING": "variable", "VALUE": shown, "FROM": "source"}, json=json)
        return
    loaded = load_config()
    settings = {
        name: {"value": mask(setting.value) if name in SECRETS else setting.value, "source": setting.source}
        for name, setting in loaded.settings.items()
    }
    if json:
        profiles = {"profile": loaded.profile, "profiles": loaded.profiles}
        output.print_json({"file": str(config_path()), **profiles, "settings": settings})
        return
    file = f"{config_path()}{'' if config_path().exists() else ' (does not exist)'}"
    output.print_fields({"file": file, "profile": loaded.profile, "profiles": ", ".join(loaded.profiles)})
    rows = [(name, setting["value"], setting["source"]) for name, setting in settings.items()]
    output.print_table(("SETTING", "VALUE", "FROM"), rows)


def shown(setting: dict[str, Any]) -> str:
    """Return the value of an engine's setting, with its fault, if it has one."""
    value = MASK if setting["is_secret"] else setting["value"] or ""
    return f"{value} ({setting['fault']})" if setting["fault"] else value


def mask(key: str) -> str:
    """Return a key with all but its last characters hidden, and a short key fully hidden."""
    return MASK + (key[-SHOWN_CHARACTERS:] if len(key) >= MIN_SHOWN_LENGTH else "")
