// A disk that fails at the n-th change: LD_PRELOAD it, and call `fail_at` from within the process (`failing_disk.py`).
//
// Counted are writes, truncations, syncs, and names that are made, moved or removed below one folder. A write that fails
// has written half of its bytes. With EIO one change fails; with ENOSPC, all from then on that need room; with 0, the
// process is killed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static atomic_long done, last;
static int reason;

// Fail the n-th change below a folder from now on, or none for n = 0. Each process says this for itself.
void fail_at(const char *folder, long n, int error) {
  snprintf(root, sizeof root, "%s", folder);
  done = 0, reason = error, last = n;
}
long changes(void) { return done; }

static int is_below(const char *path) {
  size_t length = strlen(root);
  return length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

static int fails(int needs_room) {
  long number = ++done;
  if (!last || (reason == ENOSPC ? number < last || !needs_room : number != last)) return 0;
  return 1;
}

// What becomes of a change that fails, after half of it was done.
static int failed(void) {
  if (!reason) kill(getpid(), SIGKILL);
  return errno = reason, -1;
}

static int descriptor_fails(int fd, int needs_room) {
  char link[64], path[PATH_MAX];
  if (!root[0]) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return is_below(path) && fails(needs_room);
}

static int name_fails(int folder, const char *path, int needs_room) {
  char whole[PATH_MAX], base[PATH_MAX], link[64];
  if (!root[0]) return 0;
  if (path[0] == '/') return is_below(path) && fails(needs_room);
  ssize_t size = 0;
  if (folder == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    if ((size = readlink(link, base, sizeof base - 1)) < 0) return 0;
    base[size] = 0;
  }
  snprintf(whole, sizeof whole, "%s/%s", base, path);
  return is_below(whole) && fails(needs_room);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
  if (!descriptor_fails(fd, 1)) return syscall(SYS_pwrite64, fd, bytes, count, offset);
  syscall(SYS_pwrite64, fd, bytes, count / 2, offset);
  return failed();
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }
ssize_t write(int fd, const void *bytes, size_t count) {
  if (!descriptor_fails(fd, 1)) return syscall(SYS_write, fd, bytes, count);
  syscall(SYS_write, fd, bytes, count / 2);
  return failed();
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  return descriptor_fails(fd, 1) ? failed() : syscall(SYS_writev, fd, parts, count);
}
int ftruncate64(int fd, off_t size) { return descriptor_fails(fd, 1) ? failed() : syscall(SYS_ftruncate, fd, size); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fallocate64(int fd, int mode, off_t offset, off_t size) {
  return descriptor_fails(fd, 1) ? failed() : syscall(SYS_fallocate, fd, mode, offset, size);
}
int fsync(int fd) { return descriptor_fails(fd, 0) ? failed() : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return descriptor_fails(fd, 0) ? failed() : syscall(SYS_fdatasync, fd); }

// These would write unseen; who asks for them writes otherwise then.
ssize_t sendfile64(int out, int in, off_t *offset, size_t count) { return errno = ENOTSOCK, -1; }
ssize_t sendfile(int out, int in, off_t *offset, size_t count) { return errno = ENOTSOCK, -1; }
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t count, unsigned flags) {
  return errno = EXDEV, -1;
}

static int open_counted(int folder, const char *path, int flags, mode_t mode) {
  if ((flags & (O_CREAT | O_TRUNC)) && name_fails(folder, path, 1)) return failed();
  return syscall(SYS_openat, folder, path, flags, mode);
}
#define MODE(last) va_list rest; va_start(rest, last); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest)
int open(const char *path, int flags, ...) { MODE(flags); return open_counted(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); return open_counted(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags); return open_counted(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags); return open_counted(folder, path, flags, mode); }

int renameat(int from, const char *old, int to, const char *path) {
  return name_fails(to, path, 0) ? failed() : syscall(SYS_renameat2, from, old, to, path, 0);
}
int rename(const char *old, const char *path) { return renameat(AT_FDCWD, old, AT_FDCWD, path); }
int unlinkat(int folder, const char *path, int flags) {
  return name_fails(folder, path, 0) ? failed() : syscall(SYS_unlinkat, folder, path, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int linkat(int from, const char *old, int to, const char *path, int flags) {
  return name_fails(to, path, 1) ? failed() : syscall(SYS_linkat, from, old, to, path, flags);
}
int link(const char *old, const char *path) { return linkat(AT_FDCWD, old, AT_FDCWD, path, 0); }
int mkdirat(int folder, const char *path, mode_t mode) {
  return name_fails(folder, path, 1) ? failed() : syscall(SYS_mkdirat, folder, path, mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
