/* Arguments that libc refuses, and errno, in hooked tasks (aco/hook.h): as without hooks. */
#define _GNU_SOURCE
#include "hook_tests.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

static int temporary_file(void)
{
    char path[] = "/tmp/hook_errno.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(unlink(path), 0);
    return fd;
}

static void *syncs_a_file(void *unused)
{
    int fd = temporary_file();
    begin();
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(close(fd), 0);
    return unused;
}

/* ---- Arguments ---- */

/* Some kernels look at the addresses first. */
static void is_refused(ssize_t result)
{
    CHECK(result == -1 && (errno == EINVAL || errno == EFAULT));
}

static void *test_vectors(void *unused)
{
    int (*volatile opens)(const char *path, int flags, ...) = open; /* a NULL that no compiler sees */
    char bytes[4] = "abc";
    struct iovec too_large[2] = {{bytes, SIZE_MAX}, {bytes, 3}};
    struct iovec larger[2] = {{bytes, SSIZE_MAX}, {bytes, 1}};
    const struct iovec *volatile none = NULL;
    int fd = temporary_file();
    begin();
    is_refused(pwritev(fd, too_large, 2, 0));
    is_refused(preadv(fd, too_large, 2, 0));
    is_refused(writev(fd, too_large, 2));
    if (sizeof(size_t) > 4) { /* of a 32-bit program a 64-bit kernel takes these, and moves what is there */
        is_refused(pwritev(fd, larger, 2, 0));
        is_refused(readv(fd, larger, 2));
    }
    FAILS_WITH(pwritev(fd, none, 2, 0), EFAULT);
    FAILS_WITH(opens(NULL, O_RDONLY), EFAULT);
    CHECK_EQ(close(fd), 0);
    return unused;
}

/* ---- dup3() that fails ---- */

static void *reads_a_byte(void *fd)
{
    char byte;
    begin();
    CHECK_EQ(read((int)(intptr_t)fd, &byte, 1), 1);
    return NULL;
}

/* It closes nothing, so the task that reads waits on. */
static void *test_dup_fails(void *unused)
{
    struct rlimit limit, low;
    int pair[2];
    aco_t *reader;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    reader = beside(reads_a_byte, (void *)(intptr_t)pair[0]);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    FAILS_WITH(dup3(pair[1], pair[0], O_APPEND), EINVAL);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)pair[0];
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    FAILS_WITH(dup2(pair[1], pair[0]), EBADF);
    FAILS_WITH(dup3(pair[1], pair[0], O_CLOEXEC), EBADF);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(write(pair[1], "x", 1), 1);
    join(reader);
    close_two(pair);
    return unused;
}

/* ---- errno after success ---- */

enum { MARK = 12345 };

#define LEAVES_ERRNO(call) \
    do { \
        errno = MARK; \
        CHECK((call) >= 0); \
        CHECK_EQ(errno, MARK); \
    } while (0)

static void *posts_later(void *semaphore)
{
    const struct timespec time = {0, 2000000};
    nanosleep(&time, NULL);
    CHECK_EQ(sem_post(semaphore), 0);
    return NULL;
}

static void succeeds(void *file)
{
    int fd = (int)(intptr_t)file, other;
    char bytes[4] = "abc";
    const struct iovec parts[2] = {{bytes, 1}, {bytes + 1, 2}};
    const struct timespec time = {0, 1};
    pthread_t thread;
    sem_t semaphore;
    LEAVES_ERRNO(pwrite(fd, bytes, 3, 0));
    LEAVES_ERRNO(pwritev(fd, parts, 2, 0));
    LEAVES_ERRNO(pread(fd, bytes, 3, 0));
    LEAVES_ERRNO(write(fd, bytes, 3));
    LEAVES_ERRNO(writev(fd, parts, 2));
    LEAVES_ERRNO(fsync(fd));
    LEAVES_ERRNO(fdatasync(fd));
    LEAVES_ERRNO(other = open("/", O_RDONLY | O_CLOEXEC));
    LEAVES_ERRNO(close(other));
    LEAVES_ERRNO(nanosleep(&time, NULL));
    LEAVES_ERRNO(usleep(1));
    LEAVES_ERRNO(poll(NULL, 0, 1));
    CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
    CHECK_EQ(pthread_create(&thread, NULL, posts_later, &semaphore), 0);
    LEAVES_ERRNO(sem_wait(&semaphore));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sem_destroy(&semaphore), 0);
}

static void *ends(void *file)
{
    begin();
    aco_defer(succeeds, file);
    return NULL;
}

/* Calls that wait; and those of a cleanup, which cannot: there libc does it. */
static void *test_success(void *unused)
{
    int fd = temporary_file();
    uint64_t before;
    begin();
    succeeds((void *)(intptr_t)fd);
    before = count_blocked();
    join(beside(ends, (void *)(intptr_t)fd));
    CHECK(count_blocked() - before >= 11);
    CHECK_EQ(close(fd), 0);
    return unused;
}

static const aco_function_t tests[] = {test_vectors, test_dup_fails, test_success};

/* With an argument only that test runs. */
int main(int argc, char **argv)
{
    int first = argc > 1 ? atoi(argv[1]) : 0;
    alarm(60);
    CHECK(aco_io_poll_fd() >= 0);
    run_task(syncs_a_file, NULL); /* the thread may get a ring */
    run_tests(tests + first, argc > 1 ? 1 : sizeof tests / sizeof *tests, count_descriptors());
    return check_result("hook_errno");
}
