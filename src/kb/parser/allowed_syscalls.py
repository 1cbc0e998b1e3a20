"""The system calls that a confined process may make: the name of each, and its numbers on x86-64 and on ARM64."""

from typing import Final, TypeAlias

Numbers: TypeAlias = tuple[int, int | None]
"""On x86-64 and on ARM64; None if ARM64 does not have the call."""


def _calls(text: str) -> dict[str, Numbers]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    calls = (call.split() for line in lines for call in line.split(";") if call.strip())
    return {name: (int(first), None if second == "-" else int(second)) for name, first, second in calls}


OF_PARSER: Final = _calls("""
    read 0 63; write 1 64; close 3 57; fstat 5 80; lseek 8 62; mmap 9 222; mprotect 10 226; munmap 11 215; brk 12 214;
    rt_sigaction 13 134; rt_sigprocmask 14 135; rt_sigreturn 15 139; pread64 17 67; readv 19 65; writev 20 66;
    sched_yield 24 124; mremap 25 216; madvise 28 233; getpid 39 172; exit 60 93; sigaltstack 131 132; gettid 186 178;
    futex 202 98; getdents64 217 61; restart_syscall 219 128; clock_gettime 228 113; clock_nanosleep 230 115;
    exit_group 231 94; newfstatat 262 79; getrandom 318 278;
""")
"""The calls for reading bytes, computing, and loading a module."""

OF_PROGRAMS: Final = OF_PARSER | _calls("""
    # files: Landlock decides which
    creat 85 -; stat 4 -; lstat 6 -; statx 332 291; access 21 -; faccessat 269 48; faccessat2 439 439; readlink 89 -;
    readlinkat 267 78; getdents 78 -; getcwd 79 17; chdir 80 49; fchdir 81 50; statfs 137 43; fstatfs 138 44;
    pwrite64 18 68; preadv 295 69; pwritev 296 70; preadv2 327 286; pwritev2 328 287; sendfile 40 71; splice 275 76;
    tee 276 77; copy_file_range 326 285; fsync 74 82; fdatasync 75 83; sync_file_range 277 84; ftruncate 77 46;
    fallocate 285 47; fadvise64 221 223; readahead 187 213; flock 73 32; umask 95 166; mkdir 83 -; mkdirat 258 34;
    rmdir 84 -; unlink 87 -; unlinkat 263 35; rename 82 -; renameat 264 38; renameat2 316 276; link 86 -;
    linkat 265 37; symlink 88 -; symlinkat 266 36; dup 32 23; dup2 33 -; dup3 292 24; close_range 436 436;
    # waiting
    pipe 22 -; pipe2 293 59; poll 7 -; ppoll 271 73; select 23 -; pselect6 270 72; epoll_create 213 -;
    epoll_create1 291 20; epoll_ctl 233 21; epoll_wait 232 -; epoll_pwait 281 22; epoll_pwait2 441 441; eventfd 284 -;
    eventfd2 290 19; signalfd 282 -; signalfd4 289 74; timerfd_create 283 85; timerfd_settime 286 86;
    timerfd_gettime 287 87; pause 34 -; alarm 37 -; setitimer 38 103; getitimer 36 102; timer_create 222 107;
    timer_settime 223 110; timer_gettime 224 108; timer_getoverrun 225 109; timer_delete 226 111; nanosleep 35 101;
    clock_getres 229 114; gettimeofday 96 169; time 201 -; times 100 153;
    # memory
    msync 26 227; mincore 27 232; mlock 149 228; munlock 150 229; mlock2 325 284; mbind 237 235; get_mempolicy 239 236;
    membarrier 324 283; pkey_mprotect 329 288; pkey_alloc 330 289; pkey_free 331 290;
    # its own processes and threads only
    rt_sigpending 127 136; rt_sigtimedwait 128 137; rt_sigsuspend 130 133; fork 57 -; vfork 58 -; execve 59 221;
    wait4 61 260; waitid 247 95; set_tid_address 218 96; set_robust_list 273 99; get_robust_list 274 100; rseq 334 293;
    sched_getaffinity 204 123; sched_getparam 143 121; sched_getscheduler 145 120; sched_get_priority_max 146 125;
    sched_get_priority_min 147 126; getpriority 140 141;
    # queries
    getppid 110 173; getpgrp 111 -; getpgid 121 155; getsid 124 156; getuid 102 174; geteuid 107 175; getgid 104 176;
    getegid 108 177; getresuid 118 148; getresgid 120 150; getgroups 115 158; getrlimit 97 163; getrusage 98 165;
    sysinfo 99 179; uname 63 160; getcpu 309 168; arch_prctl 158 -; capget 125 90;
    # pairs of sockets, which connect only to each other
    socketpair 53 199; recvfrom 45 207; recvmsg 47 212; recvmmsg 299 243; shutdown 48 210; getsockname 51 204;
    getpeername 52 205; getsockopt 55 209; setsockopt 54 208;
""")
"""The calls of programs that read one file and print its text.

None of them changes the permissions or the times of a file, because no Landlock rule covers these.
"""

TO_CONNECT: Final = _calls("connect 42 203; bind 49 200; sendmsg 46 211; sendmmsg 307 269")
"""The additional calls of a program that sends a file over the network."""

JUDGED: Final = _calls("""
    open 2 -; openat 257 56; sched_setaffinity 203 122; tgkill 234 131; prlimit64 302 261; fcntl 72 25; ioctl 16 29;
    prctl 157 167; clone 56 220; socket 41 198; sendto 44 206;
""")
"""Calls that some arguments make harmful; see `kb.parser.seccomp`."""
