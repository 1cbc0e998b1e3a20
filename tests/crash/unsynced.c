// Logs how to undo what is written and not synced: LD_PRELOAD it, and name in KB_UNSYNCED_ROOT the folder that is watched
// and in KB_UNSYNCED_LOG one for the log, on the same disk. `unsynced.py` reads the log and undoes.
//
// The record of a write holds the bytes that were there before; that of a name which is made, changed or removed, what
// stood under it, kept by a hard link. `fsync` of a file or a folder is logged, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *logs;
static int log_fd = -1;
static unsigned saved;

__attribute__((constructor)) static void begin(void) {
  root = getenv("KB_UNSYNCED_ROOT");
  logs = getenv("KB_UNSYNCED_LOG");
  char path[PATH_MAX];
  if (!root || !logs) return;
  snprintf(path, sizeof path, "%s/log", logs);
  log_fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int watched(const char *path) {
  size_t length = root ? strlen(root) : 0;
  if (log_fd < 0 || strncmp(path, root, length) || (path[length] && path[length] != '/')) return 0;
  const char *end = strrchr(path, '-');
  return !(end && !strcmp(end, "-shm"));  // SQLite makes it anew
}

static int absolute(int folder, const char *path, char *whole) {
  char base[PATH_MAX], link[64];
  if (path[0] == '/') return snprintf(whole, PATH_MAX, "%s", path), 1;
  if (folder == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, base, sizeof base - 1);
    if (size < 0) return 0;
    base[size] = 0;
  }
  return snprintf(whole, PATH_MAX, "%s/%s", base, path) < PATH_MAX;
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return watched(path);
}

// kind, inode, offset, size of the file before, two names, bytes: read by `unsynced.py`, which knows this header.
static void record(char kind, uint64_t inode, uint64_t offset, uint64_t before, const char *first, const char *second,
                   const void *bytes, uint64_t count) {
  struct { char kind; char pad[7]; uint64_t inode, offset, before, first, second, count; } head =
      {kind, {0}, inode, offset, before, strlen(first), strlen(second), count};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)first, head.first}, {(void *)second, head.second},
                          {(void *)bytes, count}};
  syscall(SYS_writev, log_fd, parts, 4);
}

// A hard link keeps what a name stood for, or a file whose bytes are changed.
static void keep(const char *path, const char *name) {
  char target[PATH_MAX];
  snprintf(target, sizeof target, "%s/%s", logs, name);
  syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, target, 0);
}

static void keep_inode(const char *path, uint64_t inode) {
  char name[64];
  snprintf(name, sizeof name, "inode-%llu", (unsigned long long)inode);
  keep(path, name);
}

// SQLite's locks go when any descriptor of the file is closed: what can be read through its own is.
static void read_before(int fd, char *bytes, size_t count, off_t offset) {
  if (syscall(SYS_pread64, fd, bytes, count, offset) == (ssize_t)count) return;
  char own[64];
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  int reader = syscall(SYS_openat, AT_FDCWD, own, O_RDONLY | O_CLOEXEC);
  if (reader < 0 || syscall(SYS_pread64, reader, bytes, count, offset) != (ssize_t)count) abort();
  syscall(SYS_close, reader);
}

static void before_write(int fd, off_t offset, size_t count) {
  char path[PATH_MAX];
  struct stat file;
  if (!path_of(fd, path) || fstat(fd, &file) || !S_ISREG(file.st_mode)) return;
  size_t left = offset >= file.st_size ? 0 : file.st_size - offset, there = left < count ? left : count;
  char *bytes = malloc(there + 1);
  if (there) read_before(fd, bytes, there, offset);
  keep_inode(path, file.st_ino);
  record('w', file.st_ino, offset, file.st_size, "", "", bytes, there);
  free(bytes);
}

// What is done to a disk is done one after the other, so that the log has the order.
#define ORDERED(type, before, call)        \
  do {                                     \
    if (log_fd < 0) return call;           \
    pthread_mutex_lock(&lock);             \
    before;                                \
    type done = call;                      \
    int reason = errno;                    \
    pthread_mutex_unlock(&lock);           \
    errno = reason;                        \
    return done;                           \
  } while (0)

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
  ORDERED(ssize_t, before_write(fd, offset, count), syscall(SYS_pwrite64, fd, bytes, count, offset));
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return pwrite64(fd, bytes, count, offset); }

static off_t place_of(int fd) {
  if (fcntl(fd, F_GETFL) & O_APPEND) {
    struct stat file;
    return fstat(fd, &file) ? 0 : file.st_size;
  }
  return lseek(fd, 0, SEEK_CUR);
}
ssize_t write(int fd, const void *bytes, size_t count) {
  ORDERED(ssize_t, before_write(fd, place_of(fd), count), syscall(SYS_write, fd, bytes, count));
}

int ftruncate64(int fd, off_t size) {
  struct stat file;
  size_t lost = fstat(fd, &file) || file.st_size <= size ? 0 : file.st_size - size;
  ORDERED(int, before_write(fd, size, lost), syscall(SYS_ftruncate, fd, size));
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static void synced(int fd) {
  char path[PATH_MAX];
  struct stat file;
  if (!path_of(fd, path) || fstat(fd, &file)) return;
  record('s', file.st_ino, 0, 0, S_ISDIR(file.st_mode) ? path : "", "", "", 0);
}
static int sync_then_say(int fd, long call) {
  int done = syscall(call, fd);
  if (!done) synced(fd);
  return done;
}
int fsync(int fd) { ORDERED(int, , sync_then_say(fd, SYS_fsync)); }
int fdatasync(int fd) { ORDERED(int, , sync_then_say(fd, SYS_fdatasync)); }

// These would write unseen; who asks for them writes otherwise then.
ssize_t sendfile64(int out, int in, off_t *offset, size_t count) { errno = ENOTSOCK; return -1; }
ssize_t sendfile(int out, int in, off_t *offset, size_t count) { errno = ENOTSOCK; return -1; }
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t count, unsigned flags) { errno = EXDEV; return -1; }

// A name that is made, changed or removed: what stood under it is kept as `name-N`, if anything did.
static void before_name(const char *path) {
  struct stat file;
  char name[64] = "";
  if (!lstat(path, &file) && S_ISREG(file.st_mode)) {
    snprintf(name, sizeof name, "name-%d-%u", getpid(), saved++);
    keep(path, name);
  }
  record('n', 0, 0, !lstat(path, &file) && S_ISDIR(file.st_mode), path, name, "", 0);
}

static int open_watched(int folder, const char *path, int flags, mode_t mode) {
  char whole[PATH_MAX];
  struct stat file;
  if (log_fd < 0 || !(flags & (O_CREAT | O_TRUNC)) || !absolute(folder, path, whole) || !watched(whole))
    return syscall(SYS_openat, folder, path, flags, mode);
  pthread_mutex_lock(&lock);
  int is_there = !lstat(whole, &file);
  if (!is_there) before_name(whole);
  int fd = syscall(SYS_openat, folder, path, flags & ~O_TRUNC, mode), reason = errno;
  pthread_mutex_unlock(&lock);
  if (fd >= 0 && is_there && (flags & O_TRUNC)) ftruncate64(fd, 0);
  errno = reason;
  return fd;
}
#define MODE(last) va_list rest; va_start(rest, last); mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest)
int open(const char *path, int flags, ...) { MODE(flags); return open_watched(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); return open_watched(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags); return open_watched(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags); return open_watched(folder, path, flags, mode); }

static void name_changes(int folder, const char *path) {
  char whole[PATH_MAX];
  if (absolute(folder, path, whole) && watched(whole)) before_name(whole);
}
int renameat(int from, const char *old, int to, const char *path) {
  ORDERED(int, (name_changes(to, path), name_changes(from, old)), syscall(SYS_renameat2, from, old, to, path, 0));
}
int rename(const char *old, const char *path) { return renameat(AT_FDCWD, old, AT_FDCWD, path); }
int unlinkat(int folder, const char *path, int flags) {
  ORDERED(int, name_changes(folder, path), syscall(SYS_unlinkat, folder, path, flags));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int linkat(int from, const char *old, int to, const char *path, int flags) {
  ORDERED(int, name_changes(to, path), syscall(SYS_linkat, from, old, to, path, flags));
}
int link(const char *old, const char *path) { return linkat(AT_FDCWD, old, AT_FDCWD, path, 0); }
int mkdirat(int folder, const char *path, mode_t mode) {
  ORDERED(int, name_changes(folder, path), syscall(SYS_mkdirat, folder, path, mode));
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
