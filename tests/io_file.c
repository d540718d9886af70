/* Files and directories (include/aco/file.h): results, messages, scopes, share stacks, fairness. It runs twice:
 * ACO_FILES says whether io_uring or the pool is used. io_failure.c and io_uring.c have the system's failures. */
#define _GNU_SOURCE
#include <aco/file.h>
#include <aco/offload.h>
#include "io_tests.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char folder[64];
static int by_ring; /* io_uring is used */

static const char *in_folder(const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void check_errors(int fd)
{
    char byte, message[200];
    aco_file_status_t status;
    const char *none = in_folder("none");
    FAILS_WITH(aco_file_open(none, O_RDONLY, 0), ENOENT);
    snprintf(message, sizeof message, "aco_file_open: %s: %s", none, strerror(ENOENT));
    CHECK(strcmp(aco_error_message(), message) == 0);
    FAILS_WITH(aco_file_stat(none, &status), ENOENT);
    CHECK(begins(aco_error_message(), "aco_file_stat: /"));
    FAILS_WITH(aco_file_rename(none, in_folder("other")), ENOENT);
    FAILS_WITH(aco_file_sync(9999), EBADF);
    CHECK(begins(aco_error_message(), "aco_file_sync: descriptor 9999: "));
    FAILS_WITH(aco_file_read(9999, &byte, 1), EBADF);
    FAILS_WITH(aco_file_pread(fd, &byte, 1, -1), EINVAL);
    FAILS_WITH(aco_file_pwrite(fd, &byte, 1, -1), EINVAL);
    FAILS_WITH(aco_file_fstat(9999, &status), EBADF);
    FAILS_WITH(aco_file_open(NULL, O_RDONLY, 0), EINVAL);
    FAILS_WITH(aco_file_stat(NULL, &status), EINVAL);
    FAILS_WITH(aco_file_fstat(fd, NULL), EINVAL);
    FAILS_WITH(aco_file_rename(none, NULL), EINVAL);
    errno = 0;
    CHECK(!aco_dir_open(none) && errno == ENOENT);
    CHECK(begins(aco_error_message(), "aco_dir_open: /"));
    CHECK(!aco_dir_open(NULL) && errno == EINVAL);
    FAILS_WITH(aco_dir_read(NULL, NULL), EINVAL);
    FAILS_WITH(aco_dir_close(NULL), EINVAL);
}

static void *files(void *unused)
{
    char text[16] = "";
    aco_file_status_t status;
    struct stat known;
    const char *path = in_folder("file"), *renamed = in_folder("renamed");
    int fd = aco_file_open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(fd >= 0);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(aco_file_write(fd, "0123456789", 10), 10);
    CHECK_EQ(aco_file_pwrite(fd, "ab", 2, 4), 2);
    CHECK_EQ(aco_file_sync(fd), 0);
    CHECK_EQ(aco_file_pread(fd, text, 6, 2), 6);
    CHECK(memcmp(text, "23ab67", 6) == 0);
    CHECK_EQ(aco_file_pread(fd, text, 6, 7), 3);
    CHECK_EQ(aco_file_pread(fd, text, 6, 100), 0);
    CHECK_EQ(aco_file_read(fd, text, 6), 0); /* behind what was written */
    CHECK_EQ(lseek(fd, 8, SEEK_SET), 8);
    CHECK_EQ(aco_file_read(fd, text, 6), 2);
    CHECK(memcmp(text, "89", 2) == 0);
    CHECK_EQ(aco_file_rename(path, renamed), 0);
    CHECK_EQ(aco_file_stat(renamed, &status), 0);
    CHECK_EQ(stat(renamed, &known), 0);
    CHECK(status.size == 10 && status.mode == known.st_mode && status.inode == known.st_ino && status.links == 1);
    CHECK(status.modified_ns == (int64_t)known.st_mtim.tv_sec * ACO_SECOND + known.st_mtim.tv_nsec);
    CHECK(status.user == known.st_uid && status.device == known.st_dev);
    CHECK_EQ(aco_file_pwrite(fd, "ab", 2, 20), 2);
    CHECK_EQ(aco_file_fstat(fd, &status), 0);
    CHECK_EQ(status.size, 22);
    check_errors(fd);
    CHECK_EQ(aco_file_truncate(fd, 5), 0);
    CHECK_EQ(aco_file_pread(fd, text, 6, 0), 5);
    FAILS_WITH(aco_file_truncate(fd, -1), EINVAL);
    CHECK_EQ(aco_io_close(fd), 0);
    CHECK_EQ(aco_file_link(renamed, path), 0);
    FAILS_WITH(aco_file_link(renamed, path), EEXIST);
    FAILS_WITH(aco_file_link(NULL, path), EINVAL);
    CHECK_EQ(aco_file_stat(path, &status), 0);
    CHECK(status.size == 5 && status.links == 2);
    CHECK_EQ(aco_file_unlink(path), 0);
    FAILS_WITH(aco_file_unlink(path), ENOENT);
    FAILS_WITH(aco_file_unlink(NULL), EINVAL);
    CHECK_EQ(aco_dir_make(path, 0700), 0);
    FAILS_WITH(aco_dir_make(path, 0700), EEXIST);
    CHECK_EQ(aco_dir_remove(path), 0);
    FAILS_WITH(aco_dir_remove(path), ENOENT);
    fd = aco_file_open(renamed, O_WRONLY, 0);
    FAILS_WITH(aco_file_read(fd, text, 1), EBADF);
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

/* Times without a number of nanoseconds, as far as the file system and time_t know them. */
static void *far_times(void *unused)
{
    static const int64_t seconds[] = {9223372035, 9223372037, 15000000000, -9223372037, -15000000000};
    int fd = aco_file_open(in_folder("far"), O_RDWR | O_CREAT, 0600);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        struct timespec times[2] = {{(time_t)seconds[i], 5}, {(time_t)seconds[i], 5}};
        aco_file_status_t status;
        struct stat known;
        int64_t at;
        if (times[0].tv_sec != seconds[i] || futimens(fd, times) != 0)
            continue;
        CHECK_EQ(fstat(fd, &known), 0);
        CHECK_EQ(aco_file_fstat(fd, &status), 0);
        at = known.st_mtim.tv_sec;
        if (at > 9223372036 || at < -9223372036)
            CHECK_EQ(status.modified_ns, at > 0 ? INT64_MAX : INT64_MIN);
        else
            CHECK_EQ(status.modified_ns, at * ACO_SECOND + known.st_mtim.tv_nsec);
    }
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

static void *direct(void *unused)
{
    enum { BLOCK = 4096 };
    char *block = NULL;
    int fd = aco_file_open(in_folder("direct"), O_RDWR | O_CREAT | O_DIRECT, 0600);
    CHECK(posix_memalign((void **)&block, BLOCK, BLOCK) == 0);
    memset(block, 'd', BLOCK);
    if (fd < 0 || aco_file_pwrite(fd, block, BLOCK, 0) != BLOCK) {
        printf("skipped: O_DIRECT: not on this file system\n");
    } else {
        memset(block, 0, BLOCK);
        CHECK_EQ(aco_file_pread(fd, block, BLOCK, 0), BLOCK);
        CHECK(block[0] == 'd' && block[BLOCK - 1] == 'd');
    }
    if (fd >= 0)
        CHECK_EQ(aco_io_close(fd), 0);
    free(block);
    return unused;
}

static void *directories(void *unused)
{
    enum { FILES = 1000 };
    static char seen[FILES];
    char name[256];
    aco_dir_entry_t entry;
    aco_dir_t *dir;
    int n = 0, folders = 0, result;
    CHECK_EQ(mkdir(in_folder("dir"), 0700), 0);
    CHECK_EQ(mkdir(in_folder("dir/inner"), 0700), 0);
    dir = aco_dir_open(in_folder("dir/inner"));
    CHECK_EQ(aco_dir_read(dir, &entry), 0); /* empty */
    CHECK_EQ(aco_dir_read(dir, &entry), 0);
    CHECK_EQ(aco_dir_close(dir), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "dir/a-file-with-a-long-name-so-that-there-are-several-batches-%d", i);
        close(open(in_folder(name), O_WRONLY | O_CREAT, 0600));
    }
    dir = aco_dir_open(in_folder("dir"));
    CHECK(dir != NULL);
    while ((result = aco_dir_read(dir, &entry)) == 1) {
        if (strcmp(entry.name, "inner") == 0) {
            CHECK(entry.type == DT_DIR || entry.type == DT_UNKNOWN);
            folders++;
        } else {
            int i = atoi(strrchr(entry.name, '-') + 1);
            CHECK(i >= 0 && i < FILES && !seen[i] && entry.inode);
            seen[i] = 1;
            n++;
        }
    }
    CHECK_EQ(result, 0);
    CHECK_EQ(n, FILES);
    CHECK_EQ(folders, 1);
    CHECK_EQ(aco_dir_close(dir), 0);
    return unused;
}

/* Only if the read below waits for more, so that it ends then. */
static void *writes_more(void *fd)
{
    if (aco_sleep(5 * ACO_SECOND) == 0)
        CHECK_EQ(write((int)(intptr_t)fd, "more", 4), 4);
    return NULL;
}

/* What there is: the kernel can read a pipe without waiting, as it does what it has of a file in memory. */
static void *part_of_pipe(void *unused)
{
    char text[64];
    int ends[2];
    aco_group_t group;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(write(ends[1], "first", 5), 5);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, writes_more, (void *)(intptr_t)ends[1]);
    CHECK_EQ(aco_file_read(ends[0], text, sizeof text), 5);
    aco_scope_cancel(&group.scope);
    CHECK_EQ(aco_group_end(&group), 0);
    close_both(ends);
    return unused;
}

/* What cannot seek has no offsets: no byte is moved there. */
static void *offsets_of_streams(void *unused)
{
    int pipe_ends[2], pair[2];
    char text[8], block[512];
    CHECK_EQ(pipe2(pipe_ends, O_CLOEXEC | O_DIRECT), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < 2; i++) {
        const int *ends = i == 0 ? pipe_ends : pair;
        CHECK_EQ(write(ends[1], "all", 3), 3);
        FAILS_WITH(aco_file_pread(ends[0], text, 3, 0), ESPIPE);
        FAILS_WITH(aco_file_pread(ends[0], text, 3, 1), ESPIPE);
        FAILS_WITH(aco_file_pread(ends[0], block, sizeof block, 0), ESPIPE);
        CHECK(begins(aco_error_message(), "aco_file_pread: descriptor "));
        FAILS_WITH(aco_file_pwrite(ends[1], "x", 1, 0), ESPIPE);
        CHECK(begins(aco_error_message(), "aco_file_pwrite: descriptor "));
        CHECK_EQ(aco_file_read(ends[0], text, sizeof text), 3);
        CHECK(memcmp(text, "all", 3) == 0);
        close_both(ends);
    }
    return unused;
}

/* ---- Reads that do not wait ---- */

enum { FIRST_PAGE = 4096, PAGES = 5 };
static int is_old; /* as Linux 5.9 and 5.10: where a file's next page is not in memory, such a read gets 0 */

/* The program's own comes before libc's. */
static ssize_t read_nowait(int fd, const struct iovec *parts, int count, int64_t offset, int flags)
{
    if (is_old && (offset < 0 ? lseek(fd, 0, SEEK_CUR) : offset) >= FIRST_PAGE)
        return 0;
    return syscall(SYS_preadv2, fd, parts, count, (long)offset, (long)(offset >> 32), flags);
}

#ifdef __GLIBC__
ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    return read_nowait(fd, parts, count, offset, flags);
}
#endif

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return read_nowait(fd, parts, count, offset, flags);
}

static void *old_kernel(void *unused)
{
    char part[3000];
    ssize_t n, at = 0, all = 0;
    int fd = aco_file_open(in_folder("old"), O_RDWR | O_CREAT, 0600);
    CHECK_EQ(aco_file_pread(fd, part, sizeof part, 0), 0);
    CHECK_EQ(ftruncate(fd, PAGES * FIRST_PAGE), 0);
    is_old = 1;
    while ((n = aco_file_pread(fd, part, sizeof part, at)) > 0)
        at += n;
    while ((n = aco_file_read(fd, part, sizeof part)) > 0)
        all += n;
    is_old = 0;
    CHECK_EQ(at, PAGES * FIRST_PAGE);
    CHECK_EQ(all, PAGES * FIRST_PAGE);
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

/* ---- Scopes; a FIFO is a file that can make a thread wait ---- */

static void *opens_writer(void *path)
{
    int fd = aco_file_open(path, O_WRONLY, 0);
    CHECK(fd >= 0);
    CHECK_EQ(aco_file_write(fd, "f", 1), 1);
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static void wait_for_pool(void)
{
    aco_offload_stats_t stats;
    do {
        aco_sleep(ACO_MILLISECOND / 10);
        CHECK_EQ(aco_offload_stats(&stats), 0);
    } while (stats.idle != stats.threads || stats.queued);
}

static void *cancels_begun_read(void *arg)
{
    void **both = arg;
    aco_offload_stats_t stats;
    do { /* the read has begun: a thread has it, or it was submitted before this thread slept */
        aco_sleep(ACO_MILLISECOND / 10);
        CHECK_EQ(aco_offload_stats(&stats), 0);
    } while (!by_ring && (stats.idle == stats.threads || stats.queued));
    CHECK_EQ(aco_scope_cancel(both[0]), 0);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(write(*(int *)both[1], "late", 4), 4);
    return NULL;
}

static void *scopes(void *unused)
{
    char *path = strdup(in_folder("fifo")), text[8] = "";
    int fd, writer, before, blocks_before;
    void *both[2];
    aco_scope_t scope;
    aco_group_t group;
    CHECK_EQ(mkfifo(path, 0600), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, opens_writer, path);
    fd = aco_file_open(path, O_RDONLY, 0); /* both wait for each other, each on its thread */
    CHECK(fd >= 0);
    CHECK_EQ(aco_file_read(fd, text, 1), 1);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(fd), 0);

    wait_for_pool();
    before = count_descriptors();
    blocks_before = count_blocks();
    aco_scope_begin(&scope, aco_after(2 * ACO_MILLISECOND)); /* nobody writes */
    FAILS_WITH(aco_file_open(path, O_RDONLY, 0), ETIMEDOUT);
    aco_scope_end(&scope);
    fd = open(path, O_RDWR | O_CLOEXEC); /* lets the abandoned call go on */
    wait_for_pool();
    do /* the kernel's thread goes on when it gets a core; not every build counts blocks */
        aco_sleep(by_ring ? 5 * ACO_MILLISECOND : 0);
    while (count_blocks() > blocks_before);
    CHECK_EQ(count_descriptors(), before + 1); /* it has closed what it opened */

    writer = fd;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    both[0] = &scope;
    both[1] = &writer;
    aco_group_begin(&group, ACO_KEEP_GOING);
    aco_scope_begin(&scope, ACO_FOREVER);
    member(&group, cancels_begun_read, both);
    if (by_ring) {
        FAILS_WITH(aco_file_read(fd, text, sizeof text), ECANCELED);
    } else {
        CHECK_EQ(aco_file_read(fd, text, sizeof text), 4); /* uses this memory: waits in spite of the scope's end */
        CHECK(memcmp(text, "late", 4) == 0);
    }
    FAILS_WITH(aco_check_cancelled(), ECANCELED);
    FAILS_WITH(aco_file_sync(fd), ECANCELED);
    aco_scope_end(&scope);
    aco_group_end(&group);
    if (by_ring) { /* what came after the cancelling was not lost */
        CHECK_EQ(aco_file_read(fd, text, sizeof text), 4);
        CHECK(memcmp(text, "late", 4) == 0);
    }
    close(fd);
    close(writer);
    free(path);
    return unused;
}

/* ---- Many at once ---- */

enum { RECORDS = 300, RECORD = 512 };
static int shared_fd;

static void *appends(void *number)
{
    char record[RECORD];
    memset(record, (int)(intptr_t)number, RECORD);
    CHECK_EQ(aco_file_write(shared_fd, record, RECORD), RECORD);
    return NULL;
}

static unsigned char seen_records[RECORDS];
static int reads_next; /* and not at a given position */

static void *reads_record(void *number)
{
    unsigned char record[RECORD] __attribute__((aligned(RECORD))); /* for O_DIRECT */
    CHECK_EQ(reads_next ? aco_file_read(shared_fd, record, RECORD)
                        : aco_file_pread(shared_fd, record, RECORD, (intptr_t)number * RECORD), RECORD);
    for (int i = 1; i < RECORD; i++)
        CHECK_EQ(record[i], record[0]);
    seen_records[(int)(intptr_t)number] = record[0];
    return NULL;
}

static void check_many_reads(void)
{
    aco_group_t group;
    int counts[256] = {0};
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < RECORDS; i++)
        member(&group, reads_record, (void *)i);
    CHECK_EQ(aco_group_end(&group), 0);
    for (int i = 0; i < RECORDS; i++)
        counts[seen_records[i]]++;
    for (int i = 0; i < 256; i++)
        CHECK_EQ(counts[i], i < RECORDS - 256 ? 2 : 1);
}

/* Many tasks move bytes, also at the file's own position: each record once. */
static void *many(void *unused)
{
    aco_group_t group;
    shared_fd = aco_file_open(in_folder("many"), O_RDWR | O_CREAT, 0600);
    CHECK(shared_fd >= 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < RECORDS; i++)
        member(&group, appends, (void *)i);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(lseek(shared_fd, 0, SEEK_CUR), RECORDS * RECORD);
    CHECK_EQ(aco_file_sync(shared_fd), 0);
    CHECK_EQ(aco_io_close(shared_fd), 0);
    shared_fd = aco_file_open(in_folder("many"), O_RDONLY | O_DIRECT, 0); /* nothing is in memory */
    if (shared_fd < 0)
        shared_fd = aco_file_open(in_folder("many"), O_RDONLY, 0);
    check_many_reads();
    CHECK_EQ(lseek(shared_fd, 0, SEEK_CUR), 0);
    reads_next = 1;
    check_many_reads();
    CHECK_EQ(aco_io_close(shared_fd), 0);
    return unused;
}

/* ---- Callers ---- */

/* Several of these on one stack: their frames move while they wait. */
static void *on_share_stack(void *number)
{
    char mine[600], back[600], name[32];
    int fd;
    snprintf(name, sizeof name, "shared-%d", (int)(intptr_t)number);
    memset(mine, 'a' + (int)(intptr_t)number, sizeof mine);
    fd = aco_file_open(in_folder(name), O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    for (int i = 0; i < 5; i++) {
        memset(back, 0, sizeof back);
        CHECK_EQ(aco_file_pwrite(fd, mine, sizeof mine, i * 600), 600);
        CHECK_EQ(aco_file_pread(fd, back, sizeof back, i * 600), 600);
        CHECK(memcmp(mine, back, sizeof mine) == 0);
    }
    CHECK_EQ(aco_io_close(fd), 0);
    return NULL;
}

static void *share_stack(void *unused)
{
    aco_options_t shared = {0};
    aco_group_t group;
    shared.stack = aco_share_stack_new(0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < 4; i++)
        CHECK(aco_group_spawn(&group, on_share_stack, (void *)i, &shared) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    aco_share_stack_destroy(shared.stack);
    return unused;
}

/* A fresh pipe of blocking ends: what is read from it is on the share stack during the wait. */
static void *reads_pipe(void *fd)
{
    char text[64];
    memset(text, '?', sizeof text);
    CHECK_EQ(aco_file_read((int)(intptr_t)fd, text, sizeof text), 5);
    CHECK(memcmp(text, "moved????", 9) == 0);
    return NULL;
}

static void *overwrites_and_writes(void *fd)
{
    char frames[3000];
    memset(frames, '!', sizeof frames);
    CHECK_EQ(aco_sleep(2 * ACO_MILLISECOND), 0);
    CHECK_EQ(write((int)(intptr_t)fd, "moved", 5), 5);
    CHECK_EQ(aco_sleep(5 * ACO_MILLISECOND), 0); /* the bytes come while these frames are there */
    for (size_t i = 0; i < sizeof frames; i++)
        if (frames[i] != '!') {
            CHECK(!"the frames of another task were written to");
            break;
        }
    return NULL;
}

static void *moving_frames(void *unused)
{
    int ends[2];
    aco_options_t shared = {0};
    aco_group_t group;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    shared.stack = aco_share_stack_new(0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    CHECK(aco_group_spawn(&group, reads_pipe, (void *)(intptr_t)ends[0], &shared) != NULL);
    CHECK(aco_group_spawn(&group, overwrites_and_writes, (void *)(intptr_t)ends[1], &shared) != NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    aco_share_stack_destroy(shared.stack);
    close(ends[0]);
    close(ends[1]);
    return unused;
}

static int turns, has_read;

static void *counts_turns(void *unused)
{
    for (; !has_read; turns++)
        aco_task_yield();
    return unused;
}

/* A task whose reads never wait, because the file is in memory, lets others run. */
static void *fairness(void *unused)
{
    char byte = 'x';
    int fd = aco_file_open(in_folder("fair"), O_RDWR | O_CREAT, 0600);
    aco_group_t group;
    CHECK_EQ(aco_file_write(fd, &byte, 1), 1);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, counts_turns, NULL);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(aco_file_pread(fd, &byte, 1, 0), 1);
    has_read = 1;
    CHECK(turns >= 10);
    aco_group_end(&group);
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

static void root_context(void)
{
    int fd = open(in_folder("root"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    aco_file_status_t status;
    FAILS_WITH(aco_file_open(in_folder("root"), O_RDONLY, 0), EPERM);
    FAILS_WITH(aco_file_write(fd, "r", 1), EPERM);
    FAILS_WITH(aco_file_fstat(fd, &status), EPERM);
    CHECK_EQ(aco_file_pread(fd, &status, 1, 0), 0); /* the end needs no wait */
    errno = 0;
    CHECK(!aco_dir_open(folder) && errno == EPERM);
    close(fd);
}

/* Not in this build, or not allowed here. */
static void *needs_ring(void *unused)
{
    int fd = aco_file_open(folder, O_RDONLY, 0);
    if (fd < 0) {
        printf("skipped: %s\n", aco_error_message());
        CHECK_EQ(rmdir(folder), 0);
        exit(77);
    }
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

static void remove_folder(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
    static const aco_function_t tests[] = {files,        far_times,          direct,        directories,
                                           part_of_pipe, offsets_of_streams, old_kernel,    scopes,
                                           many,         share_stack,        moving_frames, fairness};
    const char *parent = getenv("TMPDIR"), *wanted = getenv("ACO_FILES");
    snprintf(folder, sizeof folder, "%.40s/acorn-io-file-XXXXXX", parent && strlen(parent) < 40 ? parent : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(setenv("ACO_FILES", "pool", 0), 0);
    CHECK(aco_io_poll_fd() >= 0);
    by_ring = wanted && strcmp(wanted, "uring") == 0;
    if (by_ring)
        run_task(needs_ring, NULL);
    root_context();
    run_tests(tests, sizeof tests / sizeof *tests, count_descriptors());
    remove_folder();
    return check_result("io_file");
}
