"""Counts the work of requests to apps in this process, which is the same on every machine."""

from __future__ import annotations

import dis
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import apsw

from tests.conftest import ROOT

SOURCES = f"{ROOT}/src/"
INLINED = {"<listcomp>", "<dictcomp>", "<setcomp>"}
"""Functions of Python 3.11 that later versions no longer call."""

COUNTED = ContextVar("counted", default=None)
"""The work of the request in this context. Threads that work for a request share its context; background threads do not."""


class Work:
    """Calls of kb's functions, SQL statements, the rows that they return, and the steps of SQLite's virtual machine."""

    def __init__(self):
        self.calls, self.statements, self.rows, self.steps = (
            [],
            [],
            [],
            [],
        )  # lists: threads can append at the same time

    def counts(self):
        """Return the number of each."""
        return {
            "calls": len(self.calls),
            "statements": len(self.statements),
            "rows": len(self.rows),
            "steps": sum(self.steps),
        }


@contextmanager
def counting():
    """Watch the threads that start and the connections that open in this block."""
    before = threading.gettrace()
    apsw.connection_hooks.append(_watch)
    threading.settrace(_call)
    try:
        yield
    finally:
        threading.settrace(before)
        apsw.connection_hooks.remove(_watch)


@contextmanager
def counted():
    """Count the work of the requests in this block, within a block of `counting`."""
    before = sys.gettrace()
    token = COUNTED.set(work := Work())
    sys.settrace(_call)
    try:
        yield work
    finally:
        sys.settrace(before)
        COUNTED.reset(token)


def _call(frame, *_):
    """Note a call of a function of kb. The frame gets no tracer of its own."""
    if work := COUNTED.get():
        code = frame.f_code
        if code.co_filename.startswith(SOURCES) and code.co_name not in INLINED and frame.f_lasti <= _start(code):
            work.calls.append(f"{code.co_filename.removeprefix(SOURCES)} {code.co_qualname}")


@cache
def _start(code):
    """Return where a function starts: generators and coroutines continue elsewhere, and how often depends on timing."""
    return next(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


def _watch(connection):
    """Note the statements of a connection."""
    before = {}

    def statement(_, sql, __):
        if work := COUNTED.get():
            work.statements.append(sql)
        return True

    def row(_, values):
        if work := COUNTED.get():
            work.rows.append(None)
        return values

    def steps(event):
        """Note the steps of one run; SQLite adds up the steps of all runs of a statement."""
        status = event["stmt_status"]
        runs, total = status["SQLITE_STMTSTATUS_RUN"], status["SQLITE_STMTSTATUS_VM_STEP"]
        runs_before, total_before = before.get(event["id"], (0, 0))
        before[event["id"]] = runs, total
        if work := COUNTED.get():
            work.steps.append(total - total_before if runs > runs_before else total)

    connection.exec_trace = statement
    connection.row_trace = row
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, steps)
