"""The table of counts, counts.toml, and how much a count may differ from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import tomlkit

TABLE = Path(__file__).with_name("counts.toml")
GROWTH, FALL = 0.05, 0.1
STRICT = {"statements": 0.01}
"""Each statement counts, also in an operation with many."""

SHOWN = 12
"""The number of the most frequent calls or statements that a complaint shows."""

REMEDY = "If it is worth that, note why: make counts REASON='...'"


def read():
    return tomlkit.parse(TABLE.read_text())


def complaint(operation, kind, count, row, work=None):
    """Return what is wrong with a count, or None."""
    noted = row.get(kind)
    if noted is None:
        return f"{operation}: counts.toml has no number of {kind}. Run make counts."
    found = f"{operation}: {count:,} {kind}, {abs(count / noted - 1):.1%}"
    if _is_grown(kind, count, noted):
        return f"{found} more than in counts.toml ({noted:,}). {REMEDY}{_most(work, kind)}"
    if count < noted * (1 - FALL):
        return f"{found} less than in counts.toml ({noted:,}). Keep it: make counts"
    return None


def updated(table, measured, reason):
    """Lower the table's numbers to the measured counts, and raise those beyond the limit for a reason.

    A number within the limit stays, because many small rises would be a large one. Raise ValueError without a reason.
    """
    for operation, counts in measured.items():
        row = table.setdefault(operation, tomlkit.table())
        for kind, count in counts.items():
            noted = row.get(kind, count)
            if _is_grown(kind, count, noted):
                if not reason:
                    raise ValueError(complaint(operation, kind, count, row))
                reasons = row.setdefault("raised", tomlkit.array().multiline(multiline=True))
                reasons.append(f"{kind} {noted:,} to {count:,}: {reason}")
                row[kind] = count
            else:
                row[kind] = min(count, noted)
    return table


def _is_grown(kind, count, noted):
    return count > noted * (1 + STRICT.get(kind, GROWTH))


def _most(work, kind):
    """Return the most frequent calls or statements."""
    if work is None or kind not in ("calls", "statements"):
        return ""
    most = Counter(" ".join(each.split())[:100] for each in getattr(work, kind)).most_common(SHOWN)
    return "".join(f"\n  {count:7,} {what}" for what, count in most)
