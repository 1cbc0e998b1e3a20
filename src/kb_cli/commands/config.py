"""kb config."""

from kb_cli.runtime import output
from kb_cli.runtime.config import SECRETS, config_path, load_config
from kb_cli.runtime.options import Json

MASK = "••••"
SHOWN_CHARACTERS = 2
MIN_SHOWN_LENGTH = 12


def config(json: Json = False) -> None:
    """Show the command line's settings and their sources.

    kb shows only the last characters of keys.
    """
    loaded = load_config()
    settings = {
        name: {"value": mask(setting.value) if name in SECRETS else setting.value, "source": setting.source}
        for name, setting in loaded.settings.items()
    }
    if json:
        profiles = {"profile": loaded.profile, "profiles": loaded.profiles}
        output.print_json({"file": str(config_path()), **profiles, "settings": settings})
        return
    output.print_fields({"file": describe_file(), "profile": loaded.profile, "profiles": ", ".join(loaded.profiles)})
    rows = [(name, setting["value"], setting["source"]) for name, setting in settings.items()]
    output.print_table(("SETTING", "VALUE", "FROM"), rows)


def mask(key: str) -> str:
    """Return a key with all but its last characters hidden, and a short key fully hidden."""
    return MASK + (key[-SHOWN_CHARACTERS:] if len(key) >= MIN_SHOWN_LENGTH else "")


def describe_file() -> str:
    """Return the path of the configuration file, with a note if it does not exist."""
    path = config_path()
    return f"{path}" if path.exists() else f"{path} (does not exist)"
