"""Looks pinned packages up in the advisories of the package index.

It fails when a package has a known vulnerability, and when nothing could be looked up: a release must not pass then.
`--allow-offline` lets the latter pass, for machines that cannot reach the advisories. It is said in any case.
"""

import json
import subprocess
import sys
from pathlib import Path

PIP_AUDIT = [Path(sys.executable).with_name("pip-audit"), "--disable-pip", "--no-deps", "--progress-spinner", "off"]
ALLOW_OFFLINE = "--allow-offline"
VULNERABLE, NOTHING_LOOKED_UP = 1, 2


def main(arguments: list[str]) -> int:
    """Print the advisories for the packages in these files; return the exit status."""
    wanted = [word for file in arguments if file != ALLOW_OFFLINE for word in ("-r", file)]
    done = subprocess.run([*PIP_AUDIT, "--format", "json", *wanted], capture_output=True, text=True, check=False)
    offline = 0 if ALLOW_OFFLINE in arguments else NOTHING_LOOKED_UP
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        print("not audited: the advisories cannot be reached from here:", done.stderr.strip().rpartition("\n")[2])
        return offline
    unknown = sorted({each["name"] for each in packages if "skip_reason" in each})
    known = {(each["name"], each["version"]): each["vulns"] for each in packages if "vulns" in each}
    for (name, version), advisories in known.items():
        for advisory in advisories:
            fixed = ", ".join(advisory["fix_versions"]) or "none yet"
            print(f"{name} {version}: {advisory['id']}, fixed in: {fixed}")
    print(f"{len(known)} packages audited, {len(unknown)} not: {', '.join(unknown) or 'none'}")
    if any(known.values()):
        return VULNERABLE
    return 0 if known else offline


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
