"""Looks pinned packages up in the advisories of the package index; what cannot be looked up is said, and no failure."""

import json
import subprocess
import sys
from pathlib import Path

PIP_AUDIT = [Path(sys.executable).with_name("pip-audit"), "--disable-pip", "--no-deps", "--progress-spinner", "off"]


def main(files: list[str]) -> int:
    """Print what is known of the packages in these files; return 1 if any has a known vulnerability."""
    wanted = [word for file in files for word in ("-r", file)]
    done = subprocess.run([*PIP_AUDIT, "--format", "json", *wanted], capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        print("not audited: the advisories cannot be reached from here:", done.stderr.strip().rpartition("\n")[2])
        return 0
    unknown = sorted({each["name"] for each in packages if "skip_reason" in each})
    known = {(each["name"], each["version"]): each["vulns"] for each in packages if "vulns" in each}
    for (name, version), advisories in known.items():
        for advisory in advisories:
            fixed = ", ".join(advisory["fix_versions"]) or "none yet"
            print(f"{name} {version}: {advisory['id']}, fixed in: {fixed}")
    print(f"{len(known)} packages audited, {len(unknown)} not: {', '.join(unknown) or 'none'}")
    return any(known.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
