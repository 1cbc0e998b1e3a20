"""What a program may try that a file took over: each attack is a line of Python that fails where it is confined.

This file is also the extractor: it makes each attack in a process of its own and prints what became of it.
"""

import ctypes
import fcntl  # noqa: F401 - attacks use it, as they do what follows with the same remark
import json
import os
import resource  # noqa: F401
import signal
import socket  # noqa: F401
import struct  # noqa: F401
import sys

NUMBERS = {
    "truncate": (76, 45),
    "mknodat": (259, 33),
    "open_by_handle_at": (304, 265),
    "utimensat": (280, 88),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "move_pages": (279, 239),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "mount": (165, 40),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "execveat": (322, 281),
    "personality": (135, 92),
    "seccomp": (317, 277),
    "openat2": (437, 437),
    "fchmodat2": (452, 452),
    "setxattr": (188, 5),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "syslog": (103, 116),
    "init_module": (175, 105),
    "swapon": (167, 224),
    "acct": (163, 89),
}
COLUMN = 0 if os.uname().machine == "x86_64" else 1

FILES = {
    "read a document": "open(TARGET).read()",
    "list the folder of documents": "os.listdir(FOLDER)",
    "read /etc/passwd": "open('/etc/passwd').read()",
    "read the keys of root": "os.listdir('/root')",
    "read the engine's environment": "open(f'/proc/{ENGINE}/environ', 'rb').read()",
    "read the engine's memory": "open(f'/proc/{ENGINE}/mem', 'rb')",
    "read where the engine's memory is": "open(f'/proc/{ENGINE}/maps').read()",
    "open what the engine has open": "open(f'/proc/{ENGINE}/fd/0', 'rb')",
    "read through the engine's root": "open(f'/proc/{ENGINE}/root{TARGET}').read()",
    "read through its own root": "open(f'/proc/self/root{TARGET}').read()",
    "read through the root of a thread": "open(f'/proc/thread-self/root{TARGET}').read()",
    "read through a link": "os.symlink(TARGET, 'link'); open('link').read()",
    "have a second name for a document": "os.link(TARGET, 'name'); open('name').read()",
    "read by a handle": "call('open_by_handle_at', -100, bytes(64), 0)",
    "read by another call": "call('openat2', -100, TARGET.encode(), struct.pack('QQQ', 0, 0, 0), 24)",
    "write to a document": "open(TARGET, 'r+')",
    "add to a document": "open(TARGET, 'a')",
    "empty a document": "call('truncate', TARGET.encode(), 0)",
    "empty a document by reading it": "os.open(TARGET, os.O_RDONLY | os.O_TRUNC)",
    "write to the file that it reads": "open('/proc/self/fd/0', 'r+b')",
    "make a file": "open(FOLDER + '/new', 'w')",
    "make a file without a name": "os.open(FOLDER, os.O_TMPFILE | os.O_RDWR)",
    "make a folder": "os.mkdir(FOLDER + '/folder')",
    "make a device": "call('mknodat', -100, b'disk', 0o60666, 0x801)",
    "make a link beside a document": "os.symlink('/etc', FOLDER + '/link')",
    "remove a document": "os.unlink(TARGET)",
    "rename a document": "os.rename(TARGET, TARGET + '.gone')",
    "move a document here": "os.rename(TARGET, 'mine')",
    "put a file over a document": "open('mine', 'w').close(); os.rename('mine', TARGET)",
    "write to shared memory": "open('/dev/shm/kb-attack', 'w')",
    "write to the folder of temporary files": "open('/tmp/kb-attack', 'w')",
}
RIGHTS = {
    "open a document to all": "os.chmod(TARGET, 0o777)",
    "open a folder to all": "os.chmod(FOLDER, 0o777)",
    "close a document to its owner": "os.chmod(TARGET, 0)",
    "open the file that it reads to all": "os.fchmod(0, 0o777)",
    "open a document to all by a newer call": "call('fchmodat2', -100, TARGET.encode(), 0o777, 0)",
    "give a document away": "os.chown(TARGET, 65534, 65534)",
    "give the file that it reads away": "os.fchown(0, 65534, 65534)",
    "give a link away": "os.lchown(TARGET, 65534, 65534)",
    "change when a document was changed": "os.utime(TARGET, (1, 1))",
    "change when the file that it reads was changed": "call('utimensat', 0, None, struct.pack('4q', 1, 0, 1, 0), 0)",
    "mark a document": "call('setxattr', TARGET.encode(), b'user.kb', b'1', 1, 0)",
    "mark the file that it reads": "call('fsetxattr', 0, b'user.kb', b'1', 1, 0)",
    "remove a mark": "call('removexattr', TARGET.encode(), b'user.kb')",
}
NETWORK = {
    "connect": "socket.create_connection(('127.0.0.1', PORT))",
    "connect by IPv6": "socket.socket(socket.AF_INET6)",
    "send a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "listen": "socket.create_server(('127.0.0.1', 0))",
    "talk to a local service": "socket.socket(socket.AF_UNIX).connect(SERVICE)",
    "ask the kernel for addresses": "socket.socket(socket.AF_NETLINK)",
    "talk to the hypervisor": "socket.socket(socket.AF_VSOCK)",
    "use the kernel's ciphers": "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
    "send over a pair to a local service": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', SERVICE)",
    "send a message over a pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendmsg([b'x'], [], 0, SERVICE)",
    "connect a pair to a local service": "socket.socketpair(type=socket.SOCK_DGRAM)[0].connect(SERVICE)",
}
SIGNALS = {
    "kill the engine": "os.kill(ENGINE, 0)",
    "kill another process": "os.kill(VICTIM, 0)",
    "kill a group": "os.killpg(os.getpgid(VICTIM), 0)",
    "kill all": "os.kill(-1, 0)",
    "kill a task": "call('tkill', VICTIM, 0)",
    "kill a thread of the engine": "call('tgkill', ENGINE, ENGINE, 0)",
    "kill a thread of another process": "call('tgkill', VICTIM, VICTIM, 0)",
    "queue a signal": "call('rt_sigqueueinfo', VICTIM, 0, bytes(128))",
    "queue a signal to a thread": "call('rt_tgsigqueueinfo', VICTIM, VICTIM, 0, bytes(128))",
    "kill by a handle": "call('pidfd_send_signal', call('pidfd_open', VICTIM, 0), 0, None, 0)",
    "have a pipe signal another process": "fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, VICTIM)",
    "have a pipe signal a thread": "fcntl.fcntl(os.pipe()[0], 15, struct.pack('ii', 0, VICTIM))",
    "choose which signal a pipe sends": "fcntl.fcntl(os.pipe()[0], 10, signal.SIGUSR1)",
    "have a socket signal another process": "fcntl.ioctl(socket.socketpair()[0], 0x8901, struct.pack('i', VICTIM))",
    "have a socket signal by its other name": "fcntl.ioctl(socket.socketpair()[0], 0x8902, struct.pack('i', VICTIM))",
    "outlive the engine": "prctl(1, 0)",
}
PROCESSES = {
    "limit another process": "resource.prlimit(VICTIM, resource.RLIMIT_CPU, (0, 0))",
    "limit the engine": "resource.prlimit(ENGINE, resource.RLIMIT_NOFILE, (3, 3))",
    "see the limits of another process": "resource.prlimit(VICTIM, resource.RLIMIT_CPU)",
    "bind another process to a core": "os.sched_setaffinity(VICTIM, {0})",
    "slow another process": "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)",
    "schedule another process": "call('sched_setscheduler', VICTIM, 5, struct.pack('i', 0))",
    "schedule another process by a newer call": "call('sched_setattr', VICTIM, struct.pack('IIQiIQQQ', 48, 5, 0, 0, 0, 0, 0, 0), 0)",
    "slow what another process reads": "call('ioprio_set', 1, VICTIM, 3 << 13)",
    "trace another process": "call('ptrace', 0x4206, VICTIM, 0, 0)",
    "read another process's memory": "call('process_vm_readv', VICTIM, bytes(16), 1, bytes(16), 1, 0)",
    "write another process's memory": "call('process_vm_writev', VICTIM, bytes(16), 1, bytes(16), 1, 0)",
    "move another process's memory": "call('move_pages', VICTIM, 0, None, None, None, 0)",
    "take a file of another process": "call('pidfd_getfd', call('pidfd_open', VICTIM, 0), 0, 0)",
    "compare with another process": "call('kcmp', os.getpid(), VICTIM, 0, 0, 0)",
    "be a child of the engine": "call('clone', 0x8000 | 17, None, None, None, 0) or os._exit(0)",
    "make a space of users": "call('unshare', 0x10000000)",
    "be born in a space of users": "call('clone', 0x10000000 | 17, None, None, None, 0) or os._exit(0)",
    "be born by another call": "call('clone3', struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64) or os._exit(0)",
    "enter another space": "call('setns', 0, 0)",
    "leave its session": "os.setsid()",
    "leave its group": "os.fork() and os._exit(0); os.setpgid(0, 0)",
    "hide from the engine": "prctl(4, 0)",
    "become another user": "os.setuid(65534)",
    "have root's groups": "os.setgroups([0])",
    "run a program that it wrote": "open('run', 'wb').write(open('/bin/true', 'rb').read()); os.chmod('run', 0o700); os.execv('./run', ['run'])",
    "run a program without a name": "call('execveat', os.open('/bin/true', os.O_RDONLY), b'', None, None, 0x1000)",
    "run as another kind of system": "call('personality', 8)",
}
KERNEL = {
    "mount": "call('mount', b'none', b'/proc/self/fd', b'tmpfs', 0, None)",
    "mount by a newer call": "call('fsopen', b'tmpfs', 0)",
    "copy a mount": "call('open_tree', -100, b'/', 1)",
    "change its root": "call('chroot', b'.')",
    "change the root": "call('pivot_root', b'.', b'.')",
    "load a program into the kernel": "call('bpf', 0, bytes(128), 128)",
    "watch the processor": "call('perf_event_open', struct.pack('II', 1, 128) + bytes(120), 0, -1, -1, 0)",
    "handle faults": "call('userfaultfd', 0)",
    "use a ring": "call('io_uring_setup', 1, bytes(256))",
    "keep a key": "call('add_key', b'user', b'kb', b'x', 1, -3)",
    "ask for a key": "call('request_key', b'user', b'kb', None, -3)",
    "read keys": "call('keyctl', 0, -3, 0)",
    "have memory that is a file": "call('memfd_create', b'kb', 0)",
    "have memory that is secret": "call('memfd_secret', 0)",
    "leave a segment of memory": "call('shmget', 0, 1 << 20, 0o1666)",
    "leave semaphores": "call('semget', 0, 1, 0o1666)",
    "leave messages": "call('msgget', 0, 0o1666)",
    "leave a queue": "call('mq_open', b'kb-attack', os.O_CREAT | os.O_RDWR, 0o666, None)",
    "watch a folder": "call('inotify_init1', 0)",
    "watch all files": "call('fanotify_init', 0, 0)",
    "type into a terminal": "fcntl.ioctl(0, 0x5412, b'x')",
    "paste into a console": "fcntl.ioctl(0, 0x541C, b'\\2')",
    "change the file system's flags of a file": "fcntl.ioctl(0, 0x40086602, struct.pack('q', 0))",
    "read the kernel's log": "call('syslog', 3, bytes(64), 64)",
    "load a module": "call('init_module', b'', 0, b'')",
    "swap to a file": "call('swapon', b'swap', 0)",
    "account for processes": "call('acct', None)",
    "filter its own calls": "call('seccomp', 1, 0, None)",
    "make a call by its x32 name": "libc_call(0x40000000 | 90, TARGET.encode(), 0o777)",
}
ATTACKS = FILES | RIGHTS | NETWORK | SIGNALS | PROCESSES | KERNEL

LIBC = ctypes.CDLL(None, use_errno=True)


def libc_call(number, *arguments):
    """Make a system call by its number."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer = LIBC.syscall(ctypes.c_long(number), *passed)
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def call(name, *arguments):
    """Make a system call by its name."""
    return libc_call(NUMBERS[name][COLUMN], *arguments)


def prctl(*arguments):
    """Make a call of `prctl`."""
    if LIBC.prctl(*map(ctypes.c_ulong, (*arguments, 0, 0, 0)[:5])) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def outcome_of(code, names):
    """Run an attack in a process of its own, and return its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            exec(code, names)
            os.write(writing, b"succeeded")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is an answer
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    return said or f"ended with {status}"


def main():
    """Run all attacks, and print their results as JSON."""
    victim, port, *paths = sys.argv[1:5]
    folder, service = (f"/{path}" for path in paths)
    names = globals() | {
        "ENGINE": os.getppid(),
        "VICTIM": int(victim),
        "PORT": int(port),
        "FOLDER": folder,
        "TARGET": f"{folder}/document",
        "SERVICE": service,
    }
    signal.alarm(60)
    print(json.dumps({name: outcome_of(code, dict(names)) for name, code in ATTACKS.items()}))


if __name__ == "__main__":
    main()
