"""PostgreSQL's statements by name."""

from functools import partial

from kb.store.statements import Dialect, read_statements

statements = partial(read_statements, Dialect(__package__, has_colons=False))
