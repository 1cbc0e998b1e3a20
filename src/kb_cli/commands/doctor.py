"""kb doctor and kb reindex: faults of the database, and their repair."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from kb_cli.runtime import exit_codes, output
from kb_cli.runtime.engine_parts import data_settings, require
from kb_cli.runtime.options import Json, option
from kb_cli.runtime.progress import status_line


def doctor(
    repair: Annotated[bool, option("--repair", "Repair whatever kb can repair; stop the engine first.")] = False,
    fix: Annotated[bool, option("--fix", "", hidden=True)] = False,
    accept_clock: Annotated[
        bool, option("--accept-clock", "Confirm that the machine's clock is right after kb has reported a jump.")
    ] = False,
    json: Json = False,
) -> int:
    """Check the database and the files in KB_DATA_DIR.

    The engine can keep running, and kb changes nothing without --repair. --repair rebuilds everything that can be
    derived from your documents' text. It never removes text or files that you added: if these are damaged, restore a
    backup with 'kb backup restore'.
    """
    settings = data_settings()
    if accept_clock:
        require("kb.clock").accept(settings.data_dir)
        output.print_line(
            "kb trusts the machine's clock again: earlier versions and deleted documents expire as usual."
        )
        return exit_codes.OK
    maintenance = require("kb.repair.doctor")
    with status_line(quiet=json) as show_status:

        def look() -> Any:  # noqa: ANN401 - the engine's type
            return maintenance.check_data(settings, lambda name: show_status(f"checking {name}"))

        if repair or fix:  # look for faults in the restored data
            require("kb.backup.swap").finish_restore(settings)
        findings = look()
        if (repair or fix) and any(faults for faults, _ in findings.values()):
            maintenance.repair(settings, findings, lambda done, total: show_status(f"{done:,} of {total:,} passages"))
            findings = look()
    is_well = maintenance.is_well(findings)
    advice = {} if list(findings) == [maintenance.RESTORE] else maintenance.advice(settings)
    if json:
        found = {name: faults for name, (faults, _) in findings.items()}
        output.print_json({"well": is_well, "found": found, "advice": advice})
    else:
        for name, (faults, remedy) in findings.items():
            for line in [f"{fault} ({remedy.value})" for fault in faults] or [advice.pop(name, "no fault")]:
                output.print_line(f"{name}: {line}")
        for name, line in advice.items():
            output.print_line(f"{name}: {line}")
        output.print_line(conclusion(findings))
    return exit_codes.OK if is_well else exit_codes.FAILURE


def conclusion(findings: Mapping[str, tuple[Sequence[str], Any]]) -> str:
    """Return a summary of the checks, with the commands that repair the faults."""
    remedies = [remedy.name for faults, remedy in findings.values() if faults and remedy.name != "NOTICE"]
    if not remedies:
        return f"{len(findings)} checks found nothing to repair"
    steps = [f"{len(remedies)} of {len(findings)} checks found a fault."]
    if not {"BACKUP", "OPERATOR"}.issuperset(remedies):
        steps.append("To repair it, stop the engine and run 'kb doctor --repair'.")
    if "BACKUP" in remedies:
        steps.append("To restore a backup, stop the engine and run 'kb backup restore'.")
    return " ".join(steps)


def reindex(
    vectors: Annotated[
        bool, option("--vectors", "Also recompute all vectors, with the model from the settings.")
    ] = False,
) -> None:
    """Rebuild the database in KB_DATA_DIR from the text in it.

    Stop the engine first. kb rebuilds the word index and any missing or damaged vectors, keeps the other vectors, and
    frees unused space. It only replaces the old database once the new one is complete, so you can interrupt it, and it
    needs space for both. To change the model while the engine runs, use 'kb reembed'.
    """
    settings = data_settings()
    with status_line(quiet=False) as show_status:
        require("kb.repair.reindex").reindex(
            settings, lambda done, total: show_status(f"{done:,} of {total:,} passages"), recompute_all=vectors
        )
    output.print_line("the database is rebuilt")
