"""kb service: the engine as a service of this user, which systemd or launchd starts again."""

import os
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from kb_cli.runtime import output
from kb_cli.runtime.exit_codes import LocalError

UNIT: Final = "kb.service"
LABEL: Final = "local.kb"
NOT_FOR_SERVER: Final = {"KB_ENGINE_URL", "KB_MCP_URL", "KB_PROFILE"}
SYSTEMD: Final = """\
[Unit]
Description=kb, a local knowledge base
StartLimitIntervalSec=0

[Service]
ExecStart={command} serve
EnvironmentFile=-{environment}
Restart=on-failure
RestartSec=2
TimeoutStopSec=10

[Install]
WantedBy=default.target
"""


def service(
    action: Annotated[
        Literal["install", "status", "stop", "uninstall"],
        typer.Argument(metavar="install|status|stop|uninstall", help="What to do."),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing when all went well.")] = False,
) -> int:
    """Run the engine in the background, from login on, and again whenever it ends by mistake.

    'install' takes over the KB_ variables that are set now. On Linux it is a unit of systemd --user, on macOS an agent
    of launchd. 'uninstall' leaves the data where they are.
    """
    acts = LAUNCHD_ACTS if sys.platform == "darwin" else SYSTEMD_ACTS
    done = acts[action]()
    if done and not quiet:
        output.print_line(done)
    return 0


def install_unit() -> str:
    """Write the unit, and start it now and at each login."""
    write_private(environment_file(), "".join(f"{name}={shlex.quote(value)}\n" for name, value in own_settings()))
    unit = unit_file()
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(SYSTEMD.format(command=program(), environment=environment_file()))
    systemctl("daemon-reload")
    systemctl("enable", UNIT)
    systemctl("restart", UNIT)
    return (
        f"kb runs in the background, by {unit}. Its log: journalctl --user -u {UNIT} -f\n"
        "To keep it running while nobody is logged in: loginctl enable-linger"
    )


def show_unit() -> str:
    """Print what systemd says of the unit."""
    print_status(["systemctl", "--user", "status", "--no-pager", UNIT])
    return ""


def stop_unit() -> str:
    """Stop the unit until the next login."""
    systemctl("stop", UNIT)
    return "kb is stopped; 'kb service install' starts it again."


def uninstall_unit() -> str:
    """Stop and remove the unit."""
    if not unit_file().exists():
        return "There is no service of kb here."
    systemctl("disable", "--now", UNIT)
    unit_file().unlink()
    environment_file().unlink(missing_ok=True)
    systemctl("daemon-reload")
    return "The service is gone; the data are where they were."


def install_agent() -> str:
    """Write the agent, and start it now and at each login."""
    log = Path.home() / "Library/Logs/kb.log"
    agent = {
        "Label": LABEL,
        "ProgramArguments": [program(), "serve"],
        "EnvironmentVariables": dict(own_settings()),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "StandardErrorPath": str(log),
        "StandardOutPath": str(log),
    }
    write_private(agent_file(), plistlib.dumps(agent).decode())
    subprocess.run(["launchctl", "bootout", domain(), str(agent_file())], check=False, capture_output=True)  # noqa: S603, S607
    run_quietly(["launchctl", "bootstrap", domain(), str(agent_file())])
    return f"kb runs in the background, by {agent_file()}. Its log: {log}"


def show_agent() -> str:
    """Print what launchd says of the agent."""
    print_status(["launchctl", "print", f"{domain()}/{LABEL}"])
    return ""


def stop_agent() -> str:
    """Stop the agent until the next login."""
    run_quietly(["launchctl", "bootout", f"{domain()}/{LABEL}"])
    return "kb is stopped; 'kb service install' starts it again."


def uninstall_agent() -> str:
    """Stop and remove the agent."""
    if not agent_file().exists():
        return "There is no service of kb here."
    subprocess.run(["launchctl", "bootout", f"{domain()}/{LABEL}"], check=False, capture_output=True)  # noqa: S603, S607
    agent_file().unlink()
    return "The service is gone; the data are where they were."


SYSTEMD_ACTS: Final = {
    "install": install_unit,
    "status": show_unit,
    "stop": stop_unit,
    "uninstall": uninstall_unit,
}
LAUNCHD_ACTS: Final = {
    "install": install_agent,
    "status": show_agent,
    "stop": stop_agent,
    "uninstall": uninstall_agent,
}


def config_home() -> Path:
    """Return `$XDG_CONFIG_HOME`, or `~/.config`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def unit_file() -> Path:
    """Return where systemd looks for the user's units."""
    return config_home() / "systemd" / "user" / UNIT


def environment_file() -> Path:
    """Return the file with the service's settings, keys among them."""
    return config_home() / "kb" / "service.env"


def agent_file() -> Path:
    """Return where launchd looks for the user's agents."""
    return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def domain() -> str:
    """Return what launchd calls this user's session."""
    return f"gui/{os.getuid()}" if hasattr(os, "getuid") else ""


def own_settings() -> list[tuple[str, str]]:
    """Return the settings of the server that are set now."""
    return sorted(
        (name, value) for name, value in os.environ.items() if name.startswith("KB_") and name not in NOT_FOR_SERVER
    )


def program() -> str:
    """Return the path of this very kb."""
    beside = Path(sys.executable).with_name("kb")
    return str(beside if beside.exists() else Path(sys.argv[0]).absolute())


def write_private(file: Path, text: str) -> None:
    """Write a file for its owner alone."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as output_file:  # noqa: PTH123 - with a mode
        output_file.write(text)


def systemctl(*words: str) -> None:
    """Tell the user's systemd to do something."""
    run_quietly(["systemctl", "--user", *words])


def run_quietly(command: list[str]) -> None:
    """Run a program of the system's.

    Raises:
        LocalError: it is not here, or fails.
    """
    try:
        ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - of our own words
    except OSError:
        raise LocalError(f"{command[0]} is not here: 'kb serve' runs the engine in a terminal.") from None
    if ended.returncode:
        raise LocalError(f"{shlex.join(command)} failed: {ended.stderr.strip() or ended.stdout.strip()}")


def print_status(command: list[str]) -> None:
    """Let a program of the system's print what it knows.

    Raises:
        LocalError: it is not here, or knows nothing.
    """
    try:
        ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - of our own words
    except OSError:
        raise LocalError(f"{command[0]} is not here.") from None
    if not ended.stdout.strip():
        raise LocalError("There is no service of kb here: 'kb service install' makes one.")
    output.print_line(ended.stdout.rstrip())
