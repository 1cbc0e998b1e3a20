"""kb config."""

from kb_cli.runtime import output
from kb_cli.runtime.config import SECRETS, config_path, read
from kb_cli.runtime.options import Json

MASK = "••••"
SHOWN_OF_A_KEY = 2
LONG_KEY = 12


def config(json: Json = False) -> None:
    """Show what is set, and where each value comes from.

    Keys are masked.
    """
    settings = read()
    values = {
        name: {"value": masked(setting.value) if name in SECRETS else setting.value, "source": setting.source}
        for name, setting in settings.settings.items()
    }
    if json:
        profiles = {"profile": settings.profile, "profiles": settings.profiles}
        output.print_json({"file": str(config_path()), **profiles, "settings": values})
        return
    output.fields({"file": described(), "profile": settings.profile, "profiles": ", ".join(settings.profiles)})
    output.table(("SETTING", "VALUE", "FROM"), [(name, each["value"], each["source"]) for name, each in values.items()])


def masked(key: str) -> str:
    """The key as it may be shown: enough to tell two apart, if it is long enough for that."""
    return MASK + (key[-SHOWN_OF_A_KEY:] if len(key) >= LONG_KEY else "")


def described() -> str:
    """The configuration file, and whether there is one."""
    path = config_path()
    return f"{path}" if path.exists() else f"{path} (there is none)"
