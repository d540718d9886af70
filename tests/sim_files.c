/* The simulation's files are the kernel's: random sequences of calls for files, directories and named pipes have the
 * same results, errors, bytes and readiness in both. The kernel's are in a temporary directory.
 *
 * sim_files COUNT [SEED]: so many sequences, the first one from this seed. At a difference it prints the seed and the
 * shortest sequence that it finds by leaving calls out, with both worlds' lines where they differ. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "system/system.h"

#include "check.h"
#include "random.h"

#include "aco/sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CALLS = 40, SLOTS = 5, LINE = 512, MOST_BYTES = 9000, MOST_ENTRIES = 64 };

enum {
    CALL_OPEN, CALL_CLOSE, CALL_READ, CALL_WRITE, CALL_PREAD, CALL_PWRITE, CALL_READV, CALL_WRITEV, CALL_LSEEK,
    CALL_TRUNCATE, CALL_SYNC, CALL_FSTAT, CALL_STAT, CALL_RENAME, CALL_LINK, CALL_UNLINK, CALL_MKDIR, CALL_RMDIR,
    CALL_LIST, CALL_FLAGS, CALL_DUP, CALL_MKFIFO, CALL_POLL, CALL_PREADV2, CALL_UNREAD, CALLS
};

typedef struct call {
    int kind, slot;
    const char *path, *other;
    uint64_t how;
    size_t n;
    int64_t offset;
} call_t;

typedef struct sequence {
    call_t calls[MOST_CALLS];
    int n;
} sequence_t;

typedef struct world {
    int fds[SLOTS];
    char lines[MOST_CALLS][LINE];
} world_t;

/* ---- Sequences ---- */

static char long_name[300], long_path[5000];

static const char *random_path(random_t *draws)
{
    static const char *const paths[] = {"a",     "b",   "c",   "d",     "d/a",     "d/b",  "d/e",  "d/e/a", "e",
                                        "e/a",   "a/x", "d/",  "a/",    ".",       "d/.",  "d/..", "./a",   "d//a",
                                        "d/e/b", "",    "x/y", "d/e/.", "d/../b", "d/e/", "b/",   "e/../d/a"};
    unsigned which = below(draws, 200);
    return which == 0 ? long_name : which == 1 ? long_path : paths[which % (which < 130 ? 9 : 26)];
}

static int random_flags(uint64_t how)
{
    static const int flags[] = {O_CREAT,  O_CREAT | O_EXCL, O_CREAT | O_TRUNC,      O_CREAT | O_APPEND,
                                0,        O_TRUNC,          O_DIRECTORY,            O_APPEND,
                                O_EXCL,   O_CREAT | O_SYNC, O_CREAT | O_NONBLOCK,   O_TMPFILE};
    return flags[how % 12] | (how / 12 % 4 == 0 ? O_RDONLY : how / 12 % 4 == 1 ? O_WRONLY : O_RDWR) | O_CLOEXEC;
}

static void random_sequence(sequence_t *s, uint64_t seed)
{
    random_t draws = {seed};
    int has_pipe = below(&draws, 4) == 0;
    s->n = 5 + (int)below(&draws, MOST_CALLS - 4);
    for (int i = 0; i < s->n; i++) {
        call_t *c = &s->calls[i];
        c->kind = below(&draws, 4) == 0 ? CALL_OPEN : (int)below(&draws, CALLS);
        c->slot = (int)below(&draws, has_pipe ? 2 : SLOTS);
        c->path = has_pipe && (i == 0 || below(&draws, 2)) ? "a" : random_path(&draws);
        c->other = random_path(&draws);
        c->how = below(&draws, 1 << 20);
        c->n = (size_t)below(&draws, below(&draws, 2) ? 20 : MOST_BYTES);
        c->offset = (int64_t)below(&draws, below(&draws, 2) ? 30 : 20000) - 2;
    }
    if (has_pipe)
        s->calls[0].kind = CALL_MKFIFO;
}

static void drop_call(sequence_t *s, int i)
{
    memmove(&s->calls[i], &s->calls[i + 1], (size_t)(--s->n - i) * sizeof *s->calls);
}

/* ---- One call ---- */

static unsigned sum_of(const char *p, size_t n)
{
    unsigned sum = 1;
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + (unsigned char)p[i];
    return sum;
}

__attribute__((format(printf, 2, 3))) static void append(char *line, const char *text, ...)
{
    size_t n = strlen(line);
    va_list list;
    va_start(list, text);
    vsnprintf(line + n, LINE - n, text, list);
    va_end(list);
}

static void tell(char *line, int64_t result)
{
    if (result < 0)
        append(line, ": %s", strerror(errno));
    else
        append(line, " = %" PRId64, result);
}

static void tell_status(char *line, int done, const struct stat *s)
{
    tell(line, done);
    if (done == 0 && S_ISREG(s->st_mode))
        append(line, " mode %o, size %" PRId64 ", links %d", s->st_mode, (int64_t)s->st_size, (int)s->st_nlink);
    else if (done == 0)
        append(line, " mode %o", s->st_mode);
}

/* In the kernel, only another thread could end the wait for the other end of a pipe. */
static int is_named_pipe(const char *path)
{
    struct stat status;
    return aco__system.stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

static void open_slot(world_t *w, const call_t *c, char *line)
{
    int flags = random_flags(c->how) | (is_named_pipe(c->path) ? O_NONBLOCK : 0),
        fd = aco__system.open(c->path, flags, c->how & 256 ? 0644 : 0666);
    append(line, "open(\"%.20s\", %o)", c->path, (unsigned)flags);
    tell(line, fd < 0 ? -1 : 0);
    if (fd >= 0 && w->fds[c->slot] >= 0)
        CHECK(aco__system.close(w->fds[c->slot]) == 0);
    if (fd >= 0)
        w->fds[c->slot] = fd;
}

static int is_folder(int fd)
{
    struct stat status;
    return aco__system.fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

static int is_open_pipe(int fd)
{
    struct stat status;
    return aco__system.fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

static void look_at(int fd, const call_t *c, char *line)
{
    struct pollfd look = {fd, (short)(c->how % 4 == 0 ? 0 : c->how % 4 == 1 ? POLLIN : POLLIN | POLLOUT), 0};
    append(line, "poll(%d, %d)", c->slot, look.events);
    tell(line, fd < 0 ? 0 : aco__system.poll(&look, 1, 0));
    append(line, ": %x", look.revents);
}

static void move_bytes(int fd, const call_t *c, char *line)
{
    static char bytes[MOST_BYTES];
    size_t size = is_open_pipe(fd) ? c->n % 1000 : c->n; /* how much fits into a pipe depends on its pages */
    struct iovec parts[2] = {{bytes, size / 3}, {bytes + size / 3, size - size / 3}};
    int is_write = c->kind == CALL_WRITE || c->kind == CALL_PWRITE || c->kind == CALL_WRITEV;
    int flags = is_open_pipe(fd) && c->how % 4 < 2 ? RWF_NOWAIT : 0; /* files may be in memory or not */
    int64_t n;
    if (size == 0 && is_folder(fd)) /* readv() of nothing has no error, read() has */
        return;
    for (size_t i = 0; i < size; i++)
        bytes[i] = is_write ? (char)(c->how * 7 + i * 13) : 0;
    n = c->kind == CALL_READ     ? aco__system.read(fd, bytes, size)
        : c->kind == CALL_WRITE  ? aco__system.write(fd, bytes, size)
        : c->kind == CALL_PREAD  ? aco__system.pread(fd, bytes, size, c->offset)
        : c->kind == CALL_PWRITE ? aco__system.pwrite(fd, bytes, size, c->offset)
        : c->kind == CALL_READV  ? aco__system.readv(fd, parts, 2)
        : c->kind == CALL_PREADV2 ? aco__system.preadv2(fd, parts, 2, c->how % 2 ? -1 : c->offset, flags)
                                 : aco__system.writev(fd, parts, 2);
    append(line, "%s(%d, %zu, %" PRId64 ")", is_write ? "write" : "read", c->slot, size, c->offset);
    tell(line, n);
    append(line, " bytes %u", is_write || n <= 0 ? 0 : sum_of(bytes, (size_t)n));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_folder(const call_t *c, char *line)
{
    DIR *folder = aco__system.opendir(c->path);
    char *names[MOST_ENTRIES];
    const struct dirent *entry;
    size_t n = 0;
    append(line, "opendir(\"%.20s\")", c->path);
    tell(line, folder ? 0 : -1);
    while (folder && n < MOST_ENTRIES && (entry = aco__system.readdir(folder)) != NULL)
        CHECK(asprintf(&names[n++], " %s:%d", entry->d_name, entry->d_type) > 0);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        append(line, "%s", names[i]);
        free(names[i]);
    }
    if (folder)
        tell(line, aco__system.closedir(folder));
}

/* Flags that the kernel adds are left out. */
static void change_flags(int fd, const call_t *c, char *line)
{
    const int known = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC;
    int64_t flags;
    if (c->how % 3 == 0)
        (void)aco__system.fcntl(fd, F_SETFL, (c->how & 8 ? O_APPEND : 0) | (is_open_pipe(fd) ? O_NONBLOCK : 0));
    flags = aco__system.fcntl(fd, F_GETFL);
    append(line, "flags(%d)", c->slot);
    tell(line, flags < 0 ? flags : flags & known);
}

static void duplicate(world_t *w, const call_t *c, char *line)
{
    int copy = aco__system.fcntl(w->fds[c->slot], F_DUPFD_CLOEXEC, 0), to = (int)(c->how % SLOTS);
    append(line, "dup(%d, %d)", c->slot, to);
    tell(line, copy < 0 ? -1 : 0);
    if (copy < 0)
        return;
    if (w->fds[to] >= 0)
        CHECK(aco__system.close(w->fds[to]) == 0);
    w->fds[to] = copy;
}

static void change_position(int fd, const call_t *c, char *line)
{
    static const int from[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    int64_t at;
    if (is_folder(fd)) /* it depends on the kind of disk */
        return;
    at = aco__system.lseek(fd, c->offset, from[c->how % 3]);
    append(line, "lseek(%d, %" PRId64 ", %d)", c->slot, c->offset, from[c->how % 3]);
    tell(line, at);
}

static void count_unread(int fd, const call_t *c, char *line)
{
    int n = 0, done = aco__system.ioctl(fd, FIONREAD, &n);
    append(line, "FIONREAD(%d)", c->slot);
    tell(line, done);
    append(line, " %d", n);
}

static void make_call(world_t *w, const call_t *c, char *line)
{
    int fd = w->fds[c->slot];
    struct stat s = {0};
    switch (c->kind) {
    case CALL_OPEN:
        open_slot(w, c, line);
        break;
    case CALL_CLOSE:
        append(line, "close(%d)", c->slot);
        tell(line, aco__system.close(fd));
        w->fds[c->slot] = -1;
        break;
    case CALL_LSEEK:
        change_position(fd, c, line);
        break;
    case CALL_TRUNCATE:
        append(line, "ftruncate(%d, %" PRId64 ")", c->slot, c->offset);
        tell(line, aco__system.ftruncate(fd, c->offset));
        break;
    case CALL_SYNC:
        append(line, "fsync(%d)", c->slot);
        tell(line, aco__system.fsync(fd));
        break;
    case CALL_FSTAT:
        append(line, "fstat(%d)", c->slot);
        tell_status(line, aco__system.fstat(fd, &s), &s);
        break;
    case CALL_STAT:
        append(line, "stat(\"%.20s\")", c->path);
        tell_status(line, aco__system.stat(c->path, &s), &s);
        break;
    case CALL_RENAME:
        append(line, "rename(\"%.20s\", \"%.20s\")", c->path, c->other);
        tell(line, aco__system.rename(c->path, c->other));
        break;
    case CALL_LINK:
        append(line, "link(\"%.20s\", \"%.20s\")", c->path, c->other);
        tell(line, aco__system.link(c->path, c->other));
        break;
    case CALL_UNLINK:
        append(line, "unlink(\"%.20s\")", c->path);
        tell(line, aco__system.unlink(c->path));
        break;
    case CALL_MKFIFO:
        append(line, "mkfifo(\"%.20s\")", c->path);
        tell(line, aco__system.mkfifo(c->path, 0666));
        break;
    case CALL_POLL:
        look_at(fd, c, line);
        break;
    case CALL_MKDIR:
        append(line, "mkdir(\"%.20s\")", c->path);
        tell(line, aco__system.mkdir(c->path, 0700));
        break;
    case CALL_RMDIR:
        append(line, "rmdir(\"%.20s\")", c->path);
        tell(line, aco__system.rmdir(c->path));
        break;
    case CALL_LIST:
        list_folder(c, line);
        break;
    case CALL_FLAGS:
        change_flags(fd, c, line);
        break;
    case CALL_DUP:
        duplicate(w, c, line);
        break;
    case CALL_UNREAD:
        count_unread(fd, c, line);
        break;
    default:
        move_bytes(fd, c, line);
    }
}

/* ---- Worlds ---- */

static void make_calls(world_t *w, const sequence_t *s)
{
    for (int i = 0; i < SLOTS; i++)
        w->fds[i] = -1;
    for (int i = 0; i < s->n; i++) {
        w->lines[i][0] = 0;
        make_call(w, &s->calls[i], w->lines[i]);
    }
    for (int i = 0; i < SLOTS; i++)
        if (w->fds[i] >= 0)
            CHECK(aco__system.close(w->fds[i]) == 0);
}

static char folder[64];

static void empty_folder(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char inner[PATH_MAX];
    while (dir && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) == 0)
            continue;
        empty_folder(inner);
        CHECK(rmdir(inner) == 0);
    }
    if (dir)
        closedir(dir);
}

typedef void (*make_t)(world_t *w, const sequence_t *s);

static void make_in_kernel(world_t *w, const sequence_t *s)
{
    make_calls(w, s);
    empty_folder(folder);
}

typedef struct run {
    world_t *w;
    const sequence_t *s;
} run_t;

static void make_in_run(aco_sim_t *sim, void *arg)
{
    const run_t *run = arg;
    (void)sim;
    make_calls(run->w, run->s);
}

static void make_in_simulation(world_t *w, const sequence_t *s)
{
    run_t run = {w, s};
    CHECK(aco_sim_run(make_in_run, &run, 1, NULL, NULL) == 0);
}

static int (*true_truncate)(int fd, int64_t size);

static int truncate_too_little(int fd, int64_t size)
{
    return true_truncate(fd, size > 10 ? size + 1 : size);
}

static void make_with_fault(world_t *w, const sequence_t *s)
{
    true_truncate = aco__system.ftruncate;
    aco__system.ftruncate = truncate_too_little;
    make_in_kernel(w, s);
    aco__system.ftruncate = true_truncate;
}

/* ---- Comparing ---- */

static world_t ours, theirs;

/* The first line that differs; -1: none does. */
static int difference(const sequence_t *s, make_t other)
{
    make_in_kernel(&ours, s);
    other(&theirs, s);
    for (int i = 0; i < s->n; i++)
        if (strcmp(ours.lines[i], theirs.lines[i]) != 0)
            return i;
    return -1;
}

static void shrink(sequence_t *s, make_t other)
{
    int before;
    do {
        before = s->n;
        for (int i = s->n - 1; i >= 0; i--) {
            sequence_t shorter = *s;
            drop_call(&shorter, i);
            if (difference(&shorter, other) >= 0)
                *s = shorter;
        }
    } while (s->n < before);
}

/* The seed of the first sequence that differs, shrunk; 0: none does. */
static uint64_t first_difference(sequence_t *s, uint64_t seed, uint64_t count, make_t other)
{
    for (uint64_t i = 0; i < count; i++) {
        random_sequence(s, seed + i);
        if (difference(s, other) < 0)
            continue;
        shrink(s, other);
        return seed + i;
    }
    return 0;
}

static void agree(uint64_t seed, uint64_t count)
{
    sequence_t s;
    uint64_t at = first_difference(&s, seed, count, make_in_simulation);
    int differs = at ? difference(&s, make_in_simulation) : -1;
    CHECK_EQ(at, 0);
    for (int i = 0; i <= differs; i++)
        fprintf(stderr, i < differs ? "    %s\n" : "  - %s\n", ours.lines[i]);
    if (differs >= 0)
        fprintf(stderr, "  + %s\nseed %" PRIu64 "\n", theirs.lines[differs], at);
}

static void faults_are_found(void)
{
    sequence_t s;
    CHECK(first_difference(&s, 1, 200, make_with_fault) != 0);
    CHECK(s.n <= 4); /* open, perhaps another descriptor for it, truncate, a look at the size */
}

/* ---- Times ---- */

enum { TIMES_CALLS = 17, TIMES = 7 };
static char times[2][TIMES_CALLS][TIMES + 1]; /* of the kernel and of a simulation: which ones a call has changed */

/* The clock that files get their times from goes on. In real time twice: after one tick tmpfs now and then gave the
 * parent of rmdir() the time of the call before, when other processes changed files meanwhile. */
static void tick(int is_simulated)
{
    struct timespec before, now;
    if (is_simulated) {
        (void)aco_sleep(ACO_SECOND);
        return;
    }
    for (int i = 0; i < 2; i++) {
        clock_gettime(CLOCK_REALTIME_COARSE, &before);
        do
            clock_gettime(CLOCK_REALTIME_COARSE, &now);
        while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
    }
}

static void read_folder(void)
{
    DIR *names = aco__system.opendir(".");
    CHECK(names != NULL);
    while (names && aco__system.readdir(names))
        ;
    CHECK(names && aco__system.closedir(names) == 0);
}

static void make_times_call(int i, int *fd)
{
    char bytes[10] = "0123456789";
    switch (i) {
    case 0:
        *fd = aco__system.open("a", O_RDWR | O_CREAT, 0644);
        break;
    case 1:
    case 5:
        CHECK_EQ(aco__system.write(*fd, bytes, 10), 10);
        break;
    case 2:
    case 3: /* it was read since it was written */
    case 6:
        CHECK_EQ(aco__system.pread(*fd, bytes, 10, 0), 10);
        break;
    case 4:
        CHECK_EQ(aco__system.pread(*fd, bytes, 0, 0), 0);
        break;
    case 7:
        CHECK_EQ(aco__system.ftruncate(*fd, 5), 0);
        break;
    case 8:
        CHECK_EQ(aco__system.write(*fd, bytes, 0), 0);
        break;
    case 9:
        CHECK_EQ(aco__system.link("a", "b"), 0);
        break;
    case 10: /* the link has changed it */
        CHECK_EQ(aco__system.pread(*fd, bytes, 10, 5), 0);
        break;
    case 11:
        CHECK_EQ(aco__system.unlink("b"), 0);
        break;
    case 12:
        read_folder();
        break;
    case 13:
        CHECK_EQ(aco__system.mkdir("d", 0755), 0);
        break;
    case 14:
        CHECK_EQ(aco__system.rename("a", "d/a"), 0);
        break;
    case 15:
        CHECK_EQ(aco__system.rename("d/a", "a"), 0);
        break;
    default:
        CHECK_EQ(aco__system.rmdir("d"), 0);
    }
}

static char letter(struct timespec before, struct timespec after, char which)
{
    return before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec ? '-' : which;
}

static void compare_times(char *to, const struct stat *before, const struct stat *after)
{
    to[0] = letter(before->st_atim, after->st_atim, 'a');
    to[1] = letter(before->st_mtim, after->st_mtim, 'm');
    to[2] = letter(before->st_ctim, after->st_ctim, 'c');
}

static void change_times(int is_simulated)
{
    struct stat before[2], after[2];
    int fd = -1;
    memset(before, 0, sizeof before);
    CHECK_EQ(aco__system.stat(".", &before[1]), 0);
    for (int i = 0; i < TIMES_CALLS; i++) {
        char *to = times[is_simulated][i];
        tick(is_simulated);
        make_times_call(i, &fd);
        CHECK(aco__system.fstat(fd, &after[0]) == 0 && aco__system.stat(".", &after[1]) == 0);
        snprintf(to, TIMES + 1, "    .  ");
        compare_times(to, &before[0], &after[0]);
        compare_times(to + 4, &before[1], &after[1]);
        memcpy(before, after, sizeof before);
    }
    CHECK_EQ(aco__system.close(fd), 0);
}

static void change_times_in_run(aco_sim_t *sim, void *unused)
{
    (void)sim, (void)unused;
    change_times(1);
}

/* The calls change the same times of a file and of its directory. Where a disk has no times of access, those are not
 * compared. */
static void times_agree(void)
{
    struct statvfs how;
    change_times(0);
    CHECK(aco_sim_run(change_times_in_run, NULL, 1, NULL, NULL) == 0);
    CHECK_EQ(statvfs(".", &how), 0);
    for (int i = 0; i < TIMES_CALLS; i++) {
        if (how.f_flag & (ST_NOATIME | ST_NODIRATIME) || !(how.f_flag & ST_RELATIME))
            times[0][i][0] = times[1][i][0] = times[0][i][4] = times[1][i][4] = '-';
        if (strcmp(times[0][i], times[1][i]) != 0)
            fprintf(stderr, "call %d: \"%s\" in the kernel, \"%s\" simulated\n", i, times[0][i], times[1][i]);
        CHECK(strcmp(times[0][i], times[1][i]) == 0);
    }
    empty_folder(folder);
}

/* A node's files have the times of its own wall clock. */
static void *makes_file(void *sim)
{
    struct stat status;
    int fd;
    (void)aco_sleep(ACO_SECOND); /* until the clock is set */
    fd = aco__system.open("a", O_RDWR | O_CREAT, 0644);
    CHECK(fd >= 0 && aco__system.fstat(fd, &status) == 0 && aco__system.close(fd) == 0);
    CHECK_EQ((int64_t)status.st_mtim.tv_sec * ACO_SECOND + status.st_mtim.tv_nsec, aco_sim_wall_time(sim));
    CHECK(status.st_atim.tv_sec == status.st_mtim.tv_sec && status.st_ctim.tv_sec == status.st_mtim.tv_sec);
    return NULL;
}

static void tells_own_time(aco_sim_t *sim, void *unused)
{
    aco_sim_node_t *node = aco_sim_node(sim, "late", "10.0.0.1", makes_file, sim);
    (void)unused;
    CHECK_EQ(aco_sim_clock(node, -3600 * ACO_SECOND, 0), 0);
    (void)aco_sleep(2 * ACO_SECOND);
}

/* In memory, if there is such a place. */
static void enter_folder(void)
{
    snprintf(folder, sizeof folder, "%s/acorn-sim-files-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0755) == 0 && chdir(folder) == 0);
    umask(022);
    memset(long_name, 'n', 256);
    memset(long_path, '/', 4096);
    long_path[0] = 'd';
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    signal(SIGPIPE, SIG_IGN);
    enter_folder();
    faults_are_found();
    agree(seed, count);
    times_agree();
    CHECK(aco_sim_run(tells_own_time, NULL, 1, NULL, NULL) == 0);
    CHECK(chdir("/") == 0 && rmdir(folder) == 0);
    return check_result("sim_files");
}
