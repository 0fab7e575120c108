/* Planned trouble for a process's system calls: a library preloaded between a program and the C library.

   Only calls below one folder count. `trouble_arm` maps a page that a driver shares (struct plan below); the process and its
   forks count together. At call `at` it acts: it ends the process, sends it a signal, or makes the call fail. Independently it moves
   the time of day, and records all writes in a journal. `power.py` derives the possible contents of a disk after a power loss from
   it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { OPEN = 1, WRITE = 2, SYNC = 4, TRUNCATE = 8, RENAME = 16, MKDIR = 32, UNLINK = 64, LOCK = 128, READ = 256, CREATE = 512 };
enum act { NOTHING, SIGNAL, FAIL, FAIL_ALWAYS, SHORT };

struct plan {
    char folder[1024];
    int64_t mask, at, act, value; /* kinds that count; number of the call to act at, from 1; action; signal or errno */
    int64_t counted;              /* calls so far */
    int64_t acted;                /* 1 + kind of the call at which it acted */
    int64_t clock_seed;           /* 0: clocks are unchanged */
    int64_t journal;              /* descriptor; 0: none */
    int64_t clock_reads;
    int64_t each[10];             /* calls of each kind, including those that do not count */
};

static struct plan *plan;
static __thread int within; /* our own calls do not count */

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int trouble_arm(const char *page)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, page, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    void *found = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (found == MAP_FAILED) return -1;
    plan = found;
    return 0;
}

static int below(const char *path)
{
    size_t n = strlen(plan->folder);
    return !strncmp(path, plan->folder, n) && (path[n] == '/' || !path[n]);
}

static int of_fd(int fd, char *path)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, PATH_MAX - 1);
    if (n < 0) n = 0;
    path[n] = 0;
    return n > 0 && below(path);
}

static int of_name(int dir, const char *name, char *path)
{
    if (!name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return below(path);
    }
    char base[PATH_MAX];
    if (dir == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else
        of_fd(dir, base);
    while (!strncmp(name, "./", 2)) name += 2;
    int n = snprintf(path, PATH_MAX, "%s/%s", base, name);
    return n < PATH_MAX && below(path);
}

/* Count the call, and act on it if its turn has come; return whether the call continues. */
static int goes_on(enum kind kind)
{
    __atomic_add_fetch(&plan->each[__builtin_ctz(kind)], 1, __ATOMIC_SEQ_CST);
    if (!(plan->mask & kind)) return 1;
    int64_t now = __atomic_add_fetch(&plan->counted, 1, __ATOMIC_SEQ_CST);
    int always = plan->act == FAIL_ALWAYS && plan->at > 0 && now >= plan->at;
    if (now != plan->at && !always) return 1;
    if (!plan->acted) plan->acted = 1 + kind;
    switch (plan->act) {
    case SIGNAL:
        syscall(SYS_kill, (pid_t)syscall(SYS_getpid), (int)plan->value);
        return 1;
    case FAIL:
    case FAIL_ALWAYS:
        errno = (int)plan->value;
        return 0;
    }
    return 1;
}

static void note(char what, const char *path, const char *other, int64_t offset, const void *data, uint64_t size)
{
    if (!plan->journal) return;
    struct {
        uint32_t what, path, other, pad;
        int64_t offset;
        uint64_t size;
    } head = {(uint32_t)what, (uint32_t)strlen(path), (uint32_t)strlen(other), 0, offset, data ? size : 0};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)other, head.other}, {(void *)data, head.size}};
    int saved = errno;
    (void)!syscall(SYS_writev, (int)plan->journal, parts, 4); /* a single call, so that entries of other processes do not interleave */
    errno = saved;
}

#define GUARDED(kind, test) \
    char path[PATH_MAX] = ""; \
    int ours = plan && !within && (test); \
    if (ours) { \
        within = 1; \
        int on = goes_on(kind); \
        within = 0; \
        if (!on) return -1; \
    }

static int opened(int dir, const char *name, int flags, mode_t mode, int (*call)(int, const char *, int, mode_t))
{
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT;
    GUARDED(writes ? CREATE : OPEN, of_name(dir, name, path))
    struct stat before;
    int anew = ours && flags & O_CREAT && (flags & O_TMPFILE) != O_TMPFILE && lstat(path, &before) < 0;
    int got = call(dir, name, flags, mode);
    if (ours && got >= 0) {
        if (anew) note('c', path, "", 0, NULL, 0);
        else if (flags & O_TRUNC) note('t', path, "", 0, NULL, 0);
    }
    return got;
}

static int real_openat(int dir, const char *name, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, dir, name, flags | O_LARGEFILE, mode);
}

#define MODE \
    mode_t mode = 0; \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags, mode, real_openat); }
int open64(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags, mode, real_openat); }
int openat(int dir, const char *name, int flags, ...) { MODE return opened(dir, name, flags, mode, real_openat); }
int openat64(int dir, const char *name, int flags, ...) { MODE return opened(dir, name, flags, mode, real_openat); }

static int64_t place_of(int fd)
{
    if (fcntl(fd, F_GETFL) & O_APPEND) {
        struct stat found;
        return fstat(fd, &found) ? 0 : found.st_size;
    }
    return lseek(fd, 0, SEEK_CUR);
}

static ssize_t put(int fd, const void *data, size_t size, int64_t offset)
{
    GUARDED(WRITE, of_fd(fd, path))
    int64_t at = !ours ? 0 : offset < 0 ? place_of(fd) : offset;
    if (ours && plan->act == SHORT && plan->counted == plan->at && size > 1) size /= 2;
    ssize_t got = offset < 0 ? syscall(SYS_write, fd, data, size) : syscall(SYS_pwrite64, fd, data, size, offset);
    if (ours && got > 0) note('w', path, "", at, data, (uint64_t)got);
    return got;
}

ssize_t write(int fd, const void *data, size_t size) { return put(fd, data, size, -1); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return put(fd, data, size, offset); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return put(fd, data, size, offset); }

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    char path[PATH_MAX];
    if (!plan || within || !of_fd(fd, path)) return syscall(SYS_writev, fd, parts, count);
    for (int i = 0; i < count; i++) /* a write may always be partial */
        if (parts[i].iov_len) return put(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags)
{
    char path[PATH_MAX];
    if (plan && !within && of_fd(to, path)) {
        errno = EXDEV; /* the caller then copies with writes, which are intercepted */
        return -1;
    }
    return syscall(SYS_copy_file_range, from, a, to, b, size, flags);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    char path[PATH_MAX];
    if (plan && !within && of_fd(to, path)) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_sendfile, to, from, offset, size);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size) { return sendfile64(to, from, (off64_t *)offset, size); }

ssize_t read(int fd, void *data, size_t size)
{
    GUARDED(READ, of_fd(fd, path))
    return syscall(SYS_read, fd, data, size);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
    GUARDED(READ, of_fd(fd, path))
    return syscall(SYS_pread64, fd, data, size, offset);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset) { return pread64(fd, data, size, offset); }

#define SYNCS(name, number) \
    int name(int fd) \
    { \
        GUARDED(SYNC, of_fd(fd, path)) \
        int got = (int)syscall(number, fd); \
        if (ours && !got) note('s', path, "", 0, NULL, 0); \
        return got; \
    }
SYNCS(fsync, SYS_fsync)
SYNCS(fdatasync, SYS_fdatasync)

int ftruncate64(int fd, off64_t size)
{
    GUARDED(TRUNCATE, of_fd(fd, path))
    int got = (int)syscall(SYS_ftruncate, fd, size);
    if (ours && !got) note('t', path, "", size, NULL, 0);
    return got;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    GUARDED(RENAME, of_name(b, to, path))
    char was[PATH_MAX] = "";
    if (ours) of_name(a, from, was);
    int got = (int)syscall(SYS_renameat2, a, from, b, to, flags);
    if (ours && !got) note('r', was, path, 0, NULL, 0);
    return got;
}
int renameat(int a, const char *from, int b, const char *to) { return renameat2(a, from, b, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int mkdirat(int dir, const char *name, mode_t mode)
{
    GUARDED(MKDIR, of_name(dir, name, path))
    int got = (int)syscall(SYS_mkdirat, dir, name, mode);
    if (ours && !got) note('m', path, "", 0, NULL, 0);
    return got;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int dir, const char *name, int flags)
{
    GUARDED(UNLINK, of_name(dir, name, path))
    int got = (int)syscall(SYS_unlinkat, dir, name, flags);
    if (ours && !got) note('u', path, "", 0, NULL, 0);
    return got;
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int flock(int fd, int how)
{
    GUARDED(LOCK, how != LOCK_UN && of_fd(fd, path))
    return (int)syscall(SYS_flock, fd, how);
}

/* The time of day, which administrators and time servers set: it may jump at each reading, by up to 30 years, both ways. */
static int64_t jump(void)
{
    static const int64_t years[] = {0, 0, 0, 1, -1, 30, -30, 0};
    uint64_t look = (uint64_t)__atomic_add_fetch(&plan->clock_reads, 1, __ATOMIC_SEQ_CST);
    uint64_t mixed = ((uint64_t)plan->clock_seed * 0x9E3779B97F4A7C15u) ^ (look * 0xBF58476D1CE4E5B9u);
    mixed = (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBu;
    return years[(mixed >> 40) % 8] * 31557600;
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    REAL(clock_gettime);
    int got = real(which, now);
    if (!got && plan && plan->clock_seed && which == CLOCK_REALTIME) now->tv_sec += jump();
    return got;
}

time_t time(time_t *into)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
