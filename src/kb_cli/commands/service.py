"""kb service: run the engine as a service of the user, with systemd or launchd."""

import os
import plistlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from kb.running_engine import data_folder, find_running
from kb_cli.runtime import output
from kb_cli.runtime.exit_codes import LocalError
from kb_cli.runtime.files import back_up, own_settings, program, replace_file
from kb_cli.runtime.options import argument, option

UNIT: Final = "kb.service"
LABEL: Final = "local.kb"
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

NO_BUS = (
    ". systemd isn't running for this login, as after 'su' or in a container. Log in as this account with ssh or"
    " 'machinectl shell', or install kb for all accounts (docs/systemd.md)."
)


def service(
    action: Annotated[
        Literal["install", "status", "stop", "uninstall"],
        argument("install|status|stop|uninstall", "What to do (see above)."),
    ],
    quiet: Annotated[bool, option("--quiet", "Print nothing on success.")] = False,
) -> int:
    """Run the engine in the background, starting at login.

    The service restarts after a crash. 'install' starts it with the KB_ settings of your shell, in addition to those
    that it already has. 'stop' stops it until the next login. 'uninstall' removes it and keeps your data. On Linux it
    is a systemd user unit, on macOS a launchd agent.
    """
    acts = LAUNCHD_ACTS if sys.platform == "darwin" else SYSTEMD_ACTS
    done = acts[action]()
    if done and not quiet:
        output.print_line(done)
    return 0


def install_unit() -> str:
    unit, environment = unit_file(), environment_file()
    settings = merged_settings(read_environment(environment))
    text = SYSTEMD.format(command=quoted(program()), environment=str(environment).replace("%", "%%"))
    lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    is_new = not unit.exists()
    with restored_on_failure(environment, unit, before=disable_unit if is_new else None, after=partial(reload, is_new)):
        if not is_new:
            systemctl("stop", UNIT)
        refuse_second(settings)
        backup_note = back_up_other(unit, text.encode())
        replace_file(environment, lines.encode())
        replace_file(unit, text.encode())
        systemctl("daemon-reload")
        systemctl("enable", UNIT)
        systemctl("restart", UNIT)
    return (
        f"kb runs in the background ({unit}).{backup_note} To see its log: journalctl --user -u {UNIT} -f\n"
        "To keep it running after you log out: loginctl enable-linger"
    )


def disable_unit() -> None:
    """Do not start the unit at login; ignore failures."""
    with suppress(LocalError):
        systemctl("disable", UNIT)


def reload(is_new: bool) -> None:
    """Have systemd read the restored unit, and start it if it existed before; ignore failures."""
    with suppress(LocalError):
        systemctl("daemon-reload")
        if not is_new:
            systemctl("start", UNIT)


def stop_unit() -> str:
    systemctl("stop", UNIT)
    return "kb is stopped until the next login. 'kb service install' starts it now."


def uninstall_unit() -> str:
    if not unit_file().exists():
        environment_file().unlink(missing_ok=True)  # it may hold a key
        return "kb is not installed as a service on this machine."
    systemctl("disable", "--now", UNIT)
    unit_file().unlink(missing_ok=True)  # systemd may have removed it with its links
    environment_file().unlink(missing_ok=True)
    systemctl("daemon-reload")
    return "kb removed the service and kept your data."


def install_agent() -> str:
    file, log = agent_file(), Path.home() / "Library/Logs/kb.log"
    before = plistlib.loads(file.read_bytes()) if file.exists() else {}
    settings = merged_settings(before.get("EnvironmentVariables", {}))
    if not before:
        refuse_second(settings)
    agent = {
        "Label": LABEL,
        "ProgramArguments": [program(), "serve"],
        "EnvironmentVariables": settings,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "StandardErrorPath": str(log),
        "StandardOutPath": str(log),
    }
    is_other = before and before | {"EnvironmentVariables": settings} != agent
    with restored_on_failure(file, after=partial(boot, file) if before else None):
        backup_note = back_up_other(file, plistlib.dumps(agent)) if is_other else ""
        replace_file(file, plistlib.dumps(agent))
        boot_out(domain(), str(file))
        boot(file)
    return f"kb runs in the background ({file}).{backup_note} Its log: {log}"


def stop_agent() -> str:
    run_quietly(["launchctl", "bootout", f"{domain()}/{LABEL}"])
    return "kb is stopped until the next login. 'kb service install' starts it now."


def uninstall_agent() -> str:
    if not agent_file().exists():
        return "kb is not installed as a service on this machine."
    boot_out(f"{domain()}/{LABEL}")
    agent_file().unlink()
    return "kb removed the service and kept your data."


def boot(file: Path) -> None:
    run_quietly(["launchctl", "bootstrap", domain(), str(file)])


def boot_out(*agent: str) -> None:
    """Stop the agent if it runs."""
    command = ["launchctl", "bootout", *agent]
    subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - of our own words


SYSTEMD_ACTS: Final = {
    "install": install_unit,
    "status": lambda: print_status(["systemctl", "--user", "status", "--no-pager", UNIT]),
    "stop": stop_unit,
    "uninstall": uninstall_unit,
}
LAUNCHD_ACTS: Final = {
    "install": install_agent,
    "status": lambda: print_status(["launchctl", "print", f"{domain()}/{LABEL}"]),
    "stop": stop_agent,
    "uninstall": uninstall_agent,
}


def config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def unit_file() -> Path:
    return config_home() / "systemd" / "user" / UNIT


def environment_file() -> Path:
    """Return the file with the service's settings, including keys."""
    return config_home() / "kb" / "service.env"


def agent_file() -> Path:
    return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def quoted(path: str) -> str:
    """Return a path as a quoted word of a unit."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def domain() -> str:
    """Return launchd's name of the user's session."""
    return f"gui/{os.getuid()}" if hasattr(os, "getuid") else ""


def merged_settings(before: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted({**before, **own_settings()}.items()))


def read_environment(file: Path) -> dict[str, str]:
    """Return the settings of an installed service."""
    if not file.exists():
        return {}
    try:
        lines = [
            line.partition("=") for line in file.read_text("utf-8").splitlines() if not line.startswith(("#", ";"))
        ]
        return {name.strip(): " ".join(shlex.split(value)) for name, is_set, value in lines if is_set}
    except (OSError, ValueError) as error:
        raise LocalError(f"{file} cannot be read: {error}.") from None


def back_up_other(file: Path, content: bytes) -> str:
    """Back up a file if it will change; return a sentence with the path of the copy."""
    return f" The previous file is in {back_up(file)}." if file.exists() and file.read_bytes() != content else ""


@contextmanager
def restored_on_failure(
    *files: Path, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
) -> Iterator[None]:
    """Restore files if the block fails, and call `before` and `after` around that."""
    contents = {file: file.read_bytes() if file.exists() else None for file in files}
    copies = backup_copies(files)
    try:
        yield
    except BaseException:
        if before:
            before()
        for file, content in contents.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                replace_file(file, content)
        for copy in backup_copies(files) - copies:
            copy.unlink(missing_ok=True)
        if after:
            after()
        raise


def backup_copies(files: Iterable[Path]) -> set[Path]:
    return {copy for file in files for copy in file.parent.glob(f"{file.name}.before-kb*")}


def refuse_second(settings: Mapping[str, str]) -> None:
    """Refuse to start a service while another engine uses the data folder."""
    if running := find_running(data_folder({**os.environ, **settings})):
        raise LocalError(f"Another engine is using this data folder: {running}. Stop it, then install the service.")


def systemctl(*words: str) -> None:
    run_quietly(["systemctl", "--user", *words])


def run_quietly(command: list[str]) -> None:
    ended = end_of(command, " To run the engine in a terminal, use 'kb serve'.")
    if ended.returncode:
        reason = ended.stderr.strip() or ended.stdout.strip()
        raise LocalError(f"{shlex.join(command)} failed: {reason}{NO_BUS if 'connect to bus' in reason else ''}")


def print_status(command: list[str]) -> str:
    """Print the output of a program of the system, and return an empty text."""
    ended = end_of(command)
    if not ended.stdout.strip():
        raise LocalError("The kb service is not installed on this machine. 'kb service install' installs it.")
    output.print_line(ended.stdout.rstrip())
    return ""


def end_of(command: list[str], remedy: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of the system, and return its exit status and output."""
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - of our own words
    except OSError:
        raise LocalError(f"{command[0]} is not installed on this machine.{remedy}") from None
