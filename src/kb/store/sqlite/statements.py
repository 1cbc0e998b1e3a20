"""SQLite's statements by name."""

from __future__ import annotations

from functools import partial

from kb.store.statements import read_statements

statements = partial(read_statements, __package__)
