"""Starts `python -m MODULE` in milliseconds: a process that has imported everything forks, where a new one takes a second.

What comes of it is a process as any other, with its own environment, folder, streams, signals and exit code. A command that
this cannot start alike (another program, another locale, options of `Popen` that concern the start itself) is started as usual.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tests.support.eventually import SECONDS

ROOT = Path(__file__).parents[2]
MAINS = {"kb_cli.main": "kb_cli.main:main", "uvicorn": "uvicorn.main:main"}
"""The modules that can be run, and the function that each runs as a program."""

COMMANDS = {path.stem for path in (ROOT / "src/kb_cli/commands").glob("[a-z]*.py")}

IMPORTED = (
    *("kb_cli.main", "kb_cli.server", *(f"kb_cli.commands.{name}" for name in sorted(COMMANDS))),
    *(
        "kb.app",
        "kb_mcp.app",
        "kb_web.app",
        "kb.asgi.metrics",
        "kb.store.postgres.store",
        "onnxruntime",
        "uvicorn.main",
    ),
)
INTERPRETER = ("LANG", "LC_", "LD_", "PYTHON", "MALLOC_", "OMP_", "OPENBLAS_", "COVERAGE_")
"""Begin the names of variables that matter when the interpreter starts or a module is imported."""

COMPILED = {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
"""Of those, the ones that only say where compiled modules are: a fork has its modules."""

LENGTH = struct.Struct("!I")
STATUS = struct.Struct("!i")


class ForkServer:
    """The process that forks; one for each process of the suite, started when it is first needed."""

    def __init__(self):
        self._socket = self._process = None
        self._lock = threading.Lock()
        self.environment = {}

    def start(self, request, descriptors):
        """Fork a process that has these descriptors as its standard streams; the fourth is for its id and its status."""
        with self._lock:
            if self._socket is None:
                self._launch()
            payload = json.dumps(request).encode()
            socket.send_fds(self._socket, [LENGTH.pack(len(payload))], descriptors)
            self._socket.sendall(payload)

    def starts_alike(self, environment):
        """Return whether a fork with this environment behaves as a new process would."""
        with self._lock:
            if self._socket is None:
                self._launch()
        names = {name for name in self.environment.keys() | environment.keys() if name.startswith(INTERPRETER)}
        if environment.get("PYTHONPATH") == str(ROOT / "src"):  # what a fork has anyway
            names.discard("PYTHONPATH")
        return all(environment.get(name) == self.environment.get(name) for name in names - COMPILED)

    def _launch(self):
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        self.environment["FASTMCP_ENABLE_RICH_LOGGING"] = "false"
        self._socket, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its.fileno())],
                cwd=ROOT,
                env=self.environment,
                pass_fds=[its.fileno()],
            )
        atexit.register(self.close)

    def close(self):
        """End it; what it forked goes on."""
        if self._socket:
            self._socket.close()
            self._process.wait()
            self._socket = None


SERVER = ForkServer()


class Forked(subprocess.Popen):
    """A process that was forked, for whoever started it as any that was not."""

    def _execute_child(self, args, _executable, _preexec, _close, _pass, cwd, env, *rest):
        _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_ = rest
        environment = {name: os.fspath(value) for name, value in (env or os.environ).items()}
        folder = str(Path(os.fsdecode(cwd or ".")).absolute())
        request = {"args": list(map(os.fsdecode, args[2:])), "environment": environment, "folder": folder}
        ours, its = socket.socketpair()
        self._status = ours.detach()
        streams = [given if given != -1 else own for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        with its:
            SERVER.start(request, [*streams, its.fileno()])
        self.pid = STATUS.unpack(os.read(self._status, STATUS.size))[0]
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def poll(self):
        """Return the exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        """Wait until it has ended; return the exit code."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            status = STATUS.unpack(os.read(self._status, STATUS.size))[0]
            os.close(self._status)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def __del__(self):
        if self.returncode is None and hasattr(self, "_status"):
            os.close(self._status)
        super().__del__()


def open_process(command, **options):
    """Start a command as `subprocess.Popen` does."""
    is_alike = (
        command[:2] == [sys.executable, "-m"]
        and command[2] in MAINS
        and not options.keys() & {"preexec_fn", "pass_fds", "start_new_session", "user", "umask", "process_group"}
        and SERVER.starts_alike(options.get("env") or os.environ)
    )
    return (Forked if is_alike else subprocess.Popen)(command, **options)


def run(command, *, input=None, timeout=SECONDS, encoding="utf-8", **options):  # noqa: A002 - as `subprocess.run` calls it
    """Run a command as `subprocess.run` does with `capture_output`."""
    pipe = subprocess.PIPE
    with open_process(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding=encoding, **options) as process:
        try:
            shown, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, shown, errors)


def _serve(requests):
    """Fork a process per request, and report its end. Return the request in each fork, and None at the end."""
    running = {}
    ended, wakeup = socket.socketpair()
    for end in (ended, wakeup):
        end.settimeout(0)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([requests, ended], [], [])[0]
        if ended in ready:
            ended.recv(4096)
            _report(running)
        if requests not in ready:
            continue
        head, descriptors, _, _ = socket.recv_fds(requests, LENGTH.size, 4)
        if not head:
            return None
        request = json.loads(requests.recv(LENGTH.unpack(head)[0], socket.MSG_WAITALL))
        status = socket.socket(fileno=descriptors.pop())
        child = os.fork()
        if not child:
            for each in (requests, ended, wakeup, status, *running.values()):
                each.close()
            return request | {"descriptors": descriptors}
        for descriptor in descriptors:
            os.close(descriptor)
        running[child] = status
        status.sendall(STATUS.pack(child))


def _report(running):
    """Notify the starters of ended processes."""
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            with running.pop(child) as starter, suppress(OSError):
                starter.sendall(STATUS.pack(status))


def _become(request):
    """Turn this fork into the process that was asked for."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup make test` ignores it
    for number, descriptor in enumerate(request["descriptors"]):
        os.dup2(descriptor, number)
    for descriptor in request["descriptors"]:
        if descriptor > 2:
            os.close(descriptor)
    os.chdir(request["folder"])
    added = {name: value for name, value in os.environ.items() if name not in request["before"]}
    os.environ.clear()
    os.environ.update(added | request["environment"])
    time.tzset()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        setattr(sys, name, _stream(getattr(sys, f"__{name}__"), mode))
        setattr(sys, f"__{name}__", getattr(sys, name))
    module = request["args"][0]
    sys.argv[:] = [str(import_module(module).__file__), *request["args"][1:]]


def _stream(was, mode):
    binary = os.fdopen(was.fileno(), f"{mode}b", closefd=False)
    by_line = mode == "w" and (binary.isatty() or was is sys.__stderr__)
    return io.TextIOWrapper(binary, encoding=was.encoding, errors=was.errors, line_buffering=by_line)


def _end(ended):
    """End as the interpreter would, but for what it tidies up in memory."""
    code = ended.code
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit((code or 0) & 0xFF)


def _main():
    before = set(os.environ)
    for name in IMPORTED:
        import_module(name)
    import gc

    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv.pop())) as requests:
        request = _serve(requests)
    if request is None:
        os._exit(0)
    _become(request | {"before": before})
    module, _, function = MAINS[request["args"][0]].partition(":")
    try:
        getattr(import_module(module), function)()
    except SystemExit as ended:
        _end(ended)
    _end(SystemExit())


if __name__ == "__main__":
    _main()
