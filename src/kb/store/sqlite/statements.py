"""The SQL statements for SQLite, by name."""

from functools import partial

from kb.store.statements import Dialect, read_statements

statements = partial(read_statements, Dialect(__package__, has_colons=True))
