"""kb doctor."""

from typing import Annotated, Any

import typer

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json
from kb_cli.runtime.progress import status_line


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what kb can repair; the engine must not run.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", hidden=True)] = False,
    accept_clock: Annotated[
        bool,
        typer.Option("--accept-clock", help="Say that the machine's clock is right, after kb reported that it jumped."),
    ] = False,
    json: Json = False,
) -> int:
    """Check the database and the files in KB_DATA_DIR.

    The engine may keep running, and nothing is changed without --repair. With it, kb rebuilds everything that follows
    from the texts. It removes no text and no file that you added: if those are damaged, restore a backup.
    """
    settings = data_settings()
    if accept_clock:
        require("kb.clock").accept(settings.data_dir)
        output.print_line("kb goes by the machine's clock again: old versions and deleted documents expire as usual.")
        return exit_codes.OK
    maintenance = require("kb.maintenance.doctor")
    with status_line(quiet=json) as show_status:

        def look() -> Any:  # noqa: ANN401 - the engine's type
            return maintenance.check_data(settings, lambda name: show_status(f"checking {name}"))

        if repair or fix:  # what is wrong is looked for in what was restored
            require("kb.maintenance.restore_swap").finish_restore(settings)
        findings = look()
        if (repair or fix) and any(faults for faults, _ in findings.values()):
            maintenance.repair(settings, findings, lambda done, total: show_status(f"{done:,} of {total:,} passages"))
            findings = look()
    is_well = maintenance.is_well(findings)
    if json:
        output.print_json({"well": is_well, "found": {name: faults for name, (faults, _) in findings.items()}})
    else:
        for name, (faults, remedy) in findings.items():
            for line in [f"{fault} ({remedy.value})" for fault in faults] or ["well"]:
                output.print_line(f"{name}: {line}")
    return exit_codes.OK if is_well else exit_codes.FAILURE
