/* Files by io_uring, where tests/io_file.c does not look: refusals, batches, every failure of the ring and of its
 * operations, cancelling, threads that end and processes that fork meanwhile, foreign loops. Linked with --wrap for
 * liburing's calls, and for memory. */
#include "replace.h" /* first */
#include "asleep.h"

#include <aco/file.h>
#include <aco/offload.h>
#include "failing_service.h"
#include "io_tests.h"
#include "sanitizers.h"

#include <dirent.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- The system ---- */

static int setups, setup_error; /* calls, and what they fail with; 0: nothing */
static struct io_uring *newest_ring;
static unsigned unknown_flags;  /* of io_uring_setup(), on an old kernel */
static int lacks_probe;
static int enters;              /* calls that submit or wait */
static int failing_enter, enter_error;         /* this one fails so */
static int refused_enters;      /* so many more fail so */
static int submitted;           /* operations for files, those for cancelling not counted */
static int failing_operation, operation_error; /* this one fails so */
static uint64_t failing_data;   /* its user data, while the kernel has it */

int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    setups++;
    if (setup_error || params->flags & unknown_flags)
        return setup_error ? -setup_error : -EINVAL;
    newest_ring = ring;
    return __real_io_uring_queue_init_params(entries, ring, params);
}

struct io_uring_probe *__real_io_uring_get_probe_ring(struct io_uring *ring);
struct io_uring_probe *__wrap_io_uring_get_probe_ring(struct io_uring *ring);
struct io_uring_probe *__wrap_io_uring_get_probe_ring(struct io_uring *ring)
{
    return lacks_probe ? NULL : __real_io_uring_get_probe_ring(ring);
}

static int enter_fails(void)
{
    return ++enters == failing_enter || (refused_enters > 0 && refused_enters--);
}

/* An operation that is to fail becomes one that does nothing. */
static void spoil_operation(struct io_uring *ring)
{
    for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++) {
        struct io_uring_sqe *entry = &ring->sq.sqes[i & *ring->sq.kring_mask];
        uint64_t data = entry->user_data;
        if (data <= 1 || ++submitted != failing_operation)
            continue;
        memset(entry, 0, sizeof *entry);
        entry->opcode = IORING_OP_NOP;
        failing_data = entry->user_data = data;
    }
}

static void spoil_result(struct io_uring *ring)
{
    struct io_uring_cqe *event;
    unsigned head;
    io_uring_for_each_cqe(ring, head, event)
        if (failing_data && event->user_data == failing_data) {
            event->res = -operation_error;
            failing_data = 0;
        }
}

#define WRAP_ENTER(name, parameters, arguments)                                                                        \
    int __real_##name parameters;                                                                                      \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters                                                                                       \
    {                                                                                                                  \
        int n;                                                                                                         \
        if (enter_fails())                                                                                             \
            return -enter_error;                                                                                       \
        spoil_operation(ring);                                                                                         \
        n = __real_##name arguments;                                                                                   \
        spoil_result(ring);                                                                                            \
        return n;                                                                                                      \
    }
WRAP_ENTER(io_uring_submit_and_get_events, (struct io_uring *ring), (ring))
WRAP_ENTER(io_uring_submit_and_wait, (struct io_uring *ring, unsigned n_waited), (ring, n_waited))
WRAP_ENTER(io_uring_submit_and_wait_timeout,
           (struct io_uring *ring, struct io_uring_cqe **event, unsigned n_waited, struct __kernel_timespec *limit,
            sigset_t *mask),
           (ring, event, n_waited, limit, mask))

/* What is known to be in memory. */
static size_t in_memory; /* so many bytes of any read; 0: nothing */
REAL(preadv2);
static ssize_t failing_preadv2(int fd, const struct iovec *parts, int count, int64_t offset, int flags)
{
    struct iovec part = {parts[0].iov_base, in_memory};
    CHECK(count == 1 && flags);
    if (in_memory)
        return real_preadv2(fd, &part, 1, offset, 0);
    errno = EOPNOTSUPP;
    return -1;
}

/* The kernel flags what it has listed to be done later, and that may be done by then: the flag stays. */
static void leave_flag(void)
{
    __atomic_fetch_or(newest_ring->sq.kflags, IORING_SQ_TASKRUN, __ATOMIC_SEQ_CST);
}

/* ---- A folder, a FIFO, threads and processes ---- */

static char folder[64], path[96], renamed[96], fifo[96];

static void *thread_runs(void *fn)
{
    union {
        void *p;
        aco_function_t fn;
    } task = {fn};
    run_task(task.fn, NULL);
    return NULL;
}

/* Runs the task on a thread of its own, which leaves no descriptors. */
static void in_thread(aco_function_t fn)
{
    union {
        aco_function_t fn;
        void *p;
    } task = {fn};
    pthread_t thread;
    int before = count_descriptors();
    CHECK_EQ(pthread_create(&thread, NULL, thread_runs, task.p), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count_descriptors(), before);
}

/* Runs the test in a process of its own: refusals last as long as the process. */
static void in_child(void (*test)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        test();
        fflush(NULL);
        _exit(check_result("io_uring: a child"));
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static unsigned pool_threads(void)
{
    aco_offload_stats_t stats;
    CHECK_EQ(aco_offload_stats(&stats), 0);
    return stats.threads;
}

/* ---- Refusals ---- */

static void *uses_file(void *unused)
{
    char text[8] = "";
    int fd = aco_file_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(aco_file_pwrite(fd, "words", 5, 0), 5);
    CHECK_EQ(aco_file_pread(fd, text, 8, 0), 5);
    CHECK(memcmp(text, "words", 5) == 0);
    CHECK_EQ(aco_io_close(fd), 0);
    return unused;
}

static void *fails_to_use(void *error)
{
    FAILS_WITH(aco_file_open(path, O_RDWR | O_CREAT, 0600), (int)(intptr_t)error);
    CHECK(strstr(aco_error_message(), "aco_file_open: ") == aco_error_message());
    CHECK(strstr(aco_error_message(), "ACO_FILES") != NULL);
    return NULL;
}

/* One thread asks, the others know; the pool does the work. */
static void refused_once(void)
{
    int asked;
    in_thread(uses_file);
    asked = setups;
    CHECK(pool_threads() > 0);
    in_thread(uses_file);
    run_task(uses_file, NULL);
    run_task(uses_file, NULL);
    CHECK_EQ(setups, asked);
    CHECK_EQ(setenv("ACO_FILES", "uring", 1), 0);
}

static void *fails_with_eperm(void *unused)
{
    (void)unused;
    return fails_to_use((void *)(intptr_t)EPERM);
}

static void *finds_no_ring(void *unused)
{
    FAILS_WITH(aco_io_poll_fd(), EPERM);
    CHECK(strstr(aco_error_message(), "ACO_POLLER") != NULL);
    return unused;
}

static void refused(void)
{
    setup_error = EPERM;
    CHECK_EQ(setenv("ACO_POLLER", "uring", 1), 0);
    in_thread(finds_no_ring);
    CHECK_EQ(unsetenv("ACO_POLLER"), 0);
    refused_once();
    CHECK_EQ(setups, 1);
    in_thread(fails_with_eperm);
}

static void refused_by_seccomp(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 425, 0, 1), /* io_uring_setup() */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("skipped: seccomp: %s\n", strerror(errno));
        return;
    }
    refused_once();
    CHECK_EQ(setups, 1);
    in_thread(fails_with_eperm);
}

static void *fails_with_enosys(void *unused)
{
    (void)unused;
    return fails_to_use((void *)(intptr_t)ENOSYS);
}

static void lacks_operations(void)
{
    lacks_probe = 1;
    refused_once();
    in_thread(fails_with_enosys);
}

static void *fails_with_einval(void *unused)
{
    (void)unused;
    return fails_to_use((void *)(intptr_t)EINVAL);
}

static void *finds_wrong_poller(void *unused)
{
    FAILS_WITH(aco_io_poll_fd(), EINVAL);
    CHECK(strstr(aco_error_message(), "ACO_POLLER") != NULL);
    return unused;
}

static void wrong_variable(void)
{
    CHECK_EQ(setenv("ACO_POLLER", "kqueue", 1), 0);
    in_thread(finds_wrong_poller);
    CHECK_EQ(setenv("ACO_POLLER", "epoll", 1), 0);
    CHECK_EQ(setenv("ACO_FILES", "disk", 1), 0);
    in_thread(fails_with_einval);
    CHECK_EQ(setups, 0);
    CHECK_EQ(setenv("ACO_FILES", "", 1), 0);
    in_thread(uses_file);
    CHECK_EQ(pool_threads(), 0);
    CHECK_EQ(setenv("ACO_FILES", "pool", 1), 0);
    setups = 0;
    in_thread(uses_file);
    CHECK_EQ(setups, 0);
    CHECK(pool_threads() > 0);
}

/* Without memory one thread goes by the pool, the next one tries again. */
static void lacks_memory(void)
{
    setup_error = ENOMEM;
    in_thread(uses_file);
    CHECK(pool_threads() > 0);
    setup_error = 0;
    enters = 0;
    in_thread(uses_file);
    CHECK(enters > 0);
}

/* ---- Every failure ---- */

static int first_error, is_used;

static int is_bad(ssize_t result)
{
    if (result < 0 && !first_error)
        first_error = errno;
    return result < 0;
}

/* Each operation, one after the other. */
static void *uses_all(void *unused)
{
    aco_file_status_t status;
    char text[16] = "";
    int fd = aco_file_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (is_bad(fd))
        return unused;
    if (!is_bad(aco_file_pwrite(fd, "0123456789", 10, 0)) && !is_bad(aco_file_sync(fd)) &&
        !is_bad(aco_file_pread(fd, text, 16, 4)) && !is_bad(aco_file_fstat(fd, &status)) &&
        !is_bad(aco_file_stat(path, &status)) && !is_bad(aco_file_rename(path, renamed)))
        is_used = memcmp(text, "456789", 7) == 0 && status.size == 10;
    close(fd);
    return unused;
}

static void *runs_all(void *run_error)
{
    aco_t *task = aco_spawn(uses_all, NULL, NULL);
    *(int *)run_error = aco_run() == 0 ? 0 : errno;
    if (*(int *)run_error)
        CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    return NULL;
}

static void run_all(int *run_error)
{
    pthread_t thread;
    int before = count_descriptors();
    first_error = is_used = enters = submitted = 0;
    failing_data = 0;
    CHECK_EQ(pthread_create(&thread, NULL, runs_all, run_error), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count_descriptors(), before);
}

/* 512 to 516: what the kernel tells of system calls that are to be begun again, and of operations. ECANCELED: it had no
 * thread to begin the operation. */
static int is_made_all_the_same(int error)
{
    return error == EINTR || error >= 512 || error == ECANCELED;
}

static int fail_operations(int error)
{
    int run_error, place;
    operation_error = error;
    for (place = 1;; place++) {
        failing_operation = place;
        run_all(&run_error);
        failing_operation = 0;
        if (submitted < place)
            return place - 1;
        CHECK_EQ(run_error, 0);
        CHECK_EQ(first_error, is_made_all_the_same(error) ? 0 : error);
        CHECK_EQ(is_used, is_made_all_the_same(error));
    }
}

static int fail_enters(int error)
{
    int run_error, place, is_passing = error == EINTR || error == EAGAIN || error == EBUSY;
    enter_error = error;
    for (place = 1;; place++) {
        failing_enter = place;
        run_all(&run_error);
        failing_enter = 0;
        if (enters < place)
            return place - 1;
        CHECK_EQ(run_error, is_passing ? 0 : error);
        CHECK(!first_error && is_used);
    }
}

/* A kernel that lacks memory is asked again now and then, not all the time. */
static void *asks_seldom(void *unused)
{
    static const int errors[] = {EAGAIN, EBUSY, EAGAIN, EBUSY};
    uses_file(unused);
    for (size_t i = 0; i < 4; i++) {
        int64_t began = aco_now();
        enter_error = errors[i];
        refused_enters = 60;
        if (i >= 2)
            leave_flag();
        uses_file(unused);
        CHECK_EQ(refused_enters, 0);
        CHECK(aco_now() - began >= 10 * ACO_MILLISECOND); /* 60 refusals: at most three a millisecond */
    }
    return unused;
}

static void every_failure(void)
{
    static const int of_operations[] = {EINTR, 512, 513, 514, 516, ECANCELED, EIO, ENOSPC};
    static const int of_enters[] = {EINTR, EAGAIN, EBUSY, EBADF, EPERM};
    int run_error;
    run_all(&run_error);
    CHECK(is_used && !run_error && !first_error);
    CHECK_EQ(submitted, 7);
    for (size_t i = 0; i < sizeof of_operations / sizeof *of_operations; i++)
        CHECK(fail_operations(of_operations[i]) >= 7);
    for (size_t i = 0; i < sizeof of_enters / sizeof *of_enters; i++)
        CHECK(fail_enters(of_enters[i]) >= 7);
}

/* ---- No thread of the kernel's ---- */

static void *does_nothing(void *unused)
{
    return unused;
}

static void *has_pool_thread(void *unused)
{
    CHECK_EQ(aco_offload(does_nothing, NULL, NULL, NULL), 0);
    CHECK_EQ(pool_threads(), 1);
    return unused;
}

static void *lacks_any_thread(void *unused)
{
    FAILS_WITH(aco_file_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), EAGAIN);
    CHECK(strstr(aco_error_message(), "the pool has no thread") != NULL);
    return unused;
}

/* From now on the process cannot have more threads, nor can the kernel for it. Root has no bound, so it becomes
 * somebody else. */
static int refuse_threads(void)
{
    pthread_t thread;
    unlink(path);
    if (getuid() == 0 && (chmod(folder, 0777) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
        return 0;
    CHECK_EQ(setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}), 0);
    if (pthread_create(&thread, NULL, does_nothing, NULL) != 0)
        return 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

static void lacks_workers(void)
{
    CHECK_EQ(aco_offload_limits(1, 1000 * ACO_SECOND), 0);
    run_task(has_pool_thread, NULL);
    if (!refuse_threads()) {
        printf("skipped: RLIMIT_NPROC bounds nothing here\n");
        return;
    }
    run_task(uses_file, NULL);
    CHECK_EQ(setups, 1);
    CHECK(submitted > 0);
    unlink(path);
}

static void lacks_workers_and_pool(void)
{
    if (refuse_threads())
        run_task(lacks_any_thread, NULL);
}

/* ---- Many at once ---- */

enum { MANY = 1500, PART = 64 };
static int many_fd, many_done;

static void *reads_part(void *number)
{
    char part[PART];
    CHECK_EQ(aco_file_pread(many_fd, part, PART, (intptr_t)number * PART), PART);
    CHECK_EQ(part[0], (char)(intptr_t)number);
    CHECK_EQ(part[PART - 1], (char)(intptr_t)number);
    many_done++;
    return NULL;
}

static void *many(void *unused)
{
    static char parts[MANY][PART];
    aco_group_t group;
    many_fd = aco_file_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < MANY; i++)
        memset(parts[i], i, PART);
    CHECK_EQ(aco_file_pwrite(many_fd, parts, sizeof parts, 0), (ssize_t)sizeof parts);
    enters = many_done = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (intptr_t i = 0; i < MANY; i++)
        member(&group, reads_part, (void *)i);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(many_done, MANY);
    CHECK(enters > 0 && enters < MANY / 10);
    CHECK_EQ(aco_io_close(many_fd), 0);
    return unused;
}

/* ---- At the file's own position ---- */

static void *reads_next(void *unused)
{
    char part[PART];
    CHECK_EQ(aco_file_read(many_fd, part, PART), PART);
    CHECK(memcmp(part, part + 1, PART - 1) == 0);
    return unused;
}

/* Of each part only half is in memory. */
static void *in_halves(void *unused)
{
    aco_group_t group;
    char part[PART];
    many_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < 100; i++) {
        memset(part, i, PART);
        CHECK_EQ(write(many_fd, part, PART), PART);
    }
    CHECK_EQ(lseek(many_fd, 0, SEEK_SET), 0);
    in_memory = PART / 2;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < 100; i++)
        member(&group, reads_next, NULL);
    CHECK_EQ(aco_group_end(&group), 0);
    in_memory = 0;
    CHECK_EQ(aco_file_read(many_fd, part, PART), 0);
    CHECK_EQ(aco_io_close(many_fd), 0);
    return unused;
}

/* ---- Closing while calls are queued ---- */

static void *writes_old(void *fd)
{
    CHECK_EQ(aco_file_pwrite((int)(intptr_t)fd, "old", 3, 0), 3);
    return NULL;
}

static void *reads_old(void *fd)
{
    char byte = 0;
    CHECK_EQ(aco_file_pread((int)(intptr_t)fd, &byte, 1, 3), 1);
    CHECK_EQ(byte, '!');
    return NULL;
}

/* A number is used again: what was asked for before is done with the file that was asked. */
static void *closing(void *unused)
{
    aco_file_status_t status;
    for (int i = 0; i < 20; i++) {
        aco_group_t group;
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), next;
        CHECK_EQ(pwrite(fd, "new!", 4, 0), 4);
        aco_group_begin(&group, ACO_KEEP_GOING);
        member(&group, writes_old, (void *)(intptr_t)fd);
        member(&group, reads_old, (void *)(intptr_t)fd);
        CHECK_EQ(aco_task_yield(), 0);
        CHECK_EQ(aco_io_close(fd), 0);
        next = open(renamed, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_EQ(next, fd);
        CHECK_EQ(aco_group_end(&group), 0);
        CHECK(aco_file_fstat(next, &status) == 0 && status.size == 0);
        CHECK_EQ(aco_io_close(next), 0);
    }
    return unused;
}

/* ---- What never ends by itself: a FIFO ---- */

static void *times_out(void *fd)
{
    aco_scope_t scope;
    char text[4];
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_file_read((int)(intptr_t)fd, text, 4), ETIMEDOUT);
    aco_scope_end(&scope);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND));
    FAILS_WITH(aco_file_open(fifo, O_WRONLY, 0), ETIMEDOUT); /* nobody reads this one */
    aco_scope_end(&scope);
    return NULL;
}

/* A result that came before its task ran is returned, although its scope was cancelled after it. */
static void *reads_in_time(void *fd)
{
    char text[4];
    CHECK_EQ(aco_file_read((int)(intptr_t)fd, text, 4), 2);
    CHECK(memcmp(text, "ab", 2) == 0);
    FAILS_WITH(aco_check_cancelled(), ECANCELED);
    return NULL;
}

static void *cancelling(void *unused)
{
    int ends[2];
    char block[4096] = "", text[4];
    aco_group_t group;
    aco_scope_t scope;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0); /* blocking ends */
    times_out((void *)(intptr_t)ends[0]);
    aco_scope_begin(&scope, aco_after(ACO_MILLISECOND)); /* ends while it waits for room */
    while (aco_file_write(ends[1], block, sizeof block) == (ssize_t)sizeof block)
        continue;
    CHECK_EQ(errno, ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (read(ends[0], block, sizeof block) > 0)
        continue;
    CHECK_EQ(fcntl(ends[0], F_SETFL, 0), 0);

    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_in_time, (void *)(intptr_t)ends[0]);
    aco_sleep(ACO_MILLISECOND);
    CHECK_EQ(write(ends[1], "ab", 2), 2);
    for (int64_t until = aco_after(ACO_MILLISECOND); aco_now() < until;) /* so the thread looks before the task runs */
        continue;
    CHECK_EQ(aco_scope_cancel(&group.scope), 0); /* the kernel has the bytes for it already */
    CHECK_EQ(aco_group_end(&group), 0);

    aco_scope_begin(&scope, ACO_FOREVER); /* one that was not begun */
    CHECK_EQ(aco_scope_cancel(&scope), 0);
    FAILS_WITH(aco_file_read(ends[0], text, 1), ECANCELED);
    aco_scope_end(&scope);
    close(ends[0]);
    close(ends[1]);
    return unused;
}

/* ---- Other events meanwhile ---- */

static int slow_fifo[2], slow_pipe[2], has_read;
static sleeper_t reader;

static void *writes_slowly(void *unused)
{
    until_asleep(&reader);
    CHECK_EQ(write(slow_fifo[1], "1", 1), 1);
    while (!__atomic_exchange_n(&has_read, 0, __ATOMIC_ACQUIRE))
        usleep(100);
    CHECK_EQ(write(slow_pipe[1], "2", 1), 1);
    until_asleep(&reader);
    CHECK_EQ(write(slow_fifo[1], "3", 1), 1);
    return unused;
}

static void *reads_pipe(void *unused)
{
    char byte;
    CHECK_EQ(aco_io_read(slow_pipe[0], &byte, 1), 1);
    CHECK_EQ(byte, '2');
    return unused;
}

static void *offloads(void *unused)
{
    CHECK_EQ(aco_offload(writes_slowly, NULL, NULL, NULL), 0);
    return unused;
}

/* The ring's events come although the thread waits for a descriptor, and a post although it waits for the ring. */
static void *mixed(void *unused)
{
    char byte, report[2000];
    int text[2];
    ssize_t n;
    aco_group_t group;
    reader = this_sleeper();
    CHECK_EQ(pipe2(slow_fifo, O_CLOEXEC), 0);
    make_pipe(slow_pipe);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_pipe, NULL);
    member(&group, offloads, NULL);
    CHECK_EQ(aco_file_read(slow_fifo[0], &byte, 1), 1);
    CHECK_EQ(byte, '1');
    __atomic_store_n(&has_read, 1, __ATOMIC_RELEASE);
    CHECK_EQ(aco_file_read(slow_fifo[0], &byte, 1), 1);
    CHECK_EQ(byte, '3');
    CHECK_EQ(aco_group_end(&group), 0);
    close_both(slow_pipe);
    make_pipe(slow_pipe);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, offloads, NULL);
    CHECK_EQ(aco_file_read(slow_fifo[0], &byte, 1), 1);
    __atomic_store_n(&has_read, 1, __ATOMIC_RELEASE);
    CHECK_EQ(aco_file_read(slow_fifo[0], &byte, 1), 1);
    CHECK_EQ(aco_group_end(&group), 0);

    CHECK_EQ(pipe2(text, O_CLOEXEC), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, times_out, (void *)(intptr_t)slow_fifo[0]);
    aco_task_yield();
    CHECK_EQ(aco_tasks_dump(text[1]), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    n = read(text[0], report, sizeof report - 1);
    report[n > 0 ? n : 0] = 0;
    CHECK(strstr(report, "for the system to answer") != NULL);
    close_both(text);
    close_both(slow_fifo);
    close_both(slow_pipe);
    return unused;
}

/* ---- A foreign loop ---- */

static int waits_outside(void *fd, int64_t timeout_ns)
{
    struct pollfd what = {(int)(intptr_t)fd, POLLIN, 0};
    CHECK(poll(&what, 1, timeout_ns < 0 ? 10000 : (int)(timeout_ns / 1000000)) >= 0);
    CHECK(timeout_ns >= 0 || what.revents); /* what was not submitted never comes */
    return 1;
}

static void *in_foreign_loop(void *unused)
{
    uses_file(unused);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    return unused;
}

static void *foreign_loop(void *unused)
{
    int fd = aco_io_poll_fd();
    CHECK_EQ(aco_on_idle(waits_outside, (void *)(intptr_t)fd), 0);
    run_task(in_foreign_loop, NULL);
    return unused;
}

static void *opens(void *name)
{
    int fd = aco_file_open(name, O_RDONLY, 0);
    CHECK(fd >= 0);
    close(fd);
    return NULL;
}

static void *begins_loop(void *unused)
{
    aco_group_t group;
    int fd;
    uses_file(unused); /* it waits in the ring */
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, opens, path);
    aco_task_yield();
    submitted = 0;
    failing_operation = 1;
    operation_error = EINTR;
    fd = aco_io_poll_fd();
    failing_operation = 0;
    CHECK_EQ(aco_on_idle(waits_outside, (void *)(intptr_t)fd), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(submitted, 2);
    CHECK_EQ(aco_on_idle(NULL, NULL), 0);
    return unused;
}

/* ---- Wakes by other threads ---- */

enum { RING_ENTRIES = 128 }; /* as in src/io/uring.c: so many operations leave no room for what tells of wakes */

static aco_t *woken_task;
static sleeper_t its_thread;
static int was_woken;

static void *is_woken(void *unused)
{
    its_thread = this_sleeper();
    __atomic_store_n(&woken_task, aco_get_co(), __ATOMIC_RELEASE);
    CHECK_EQ(aco_park("for another thread"), 0);
    __atomic_store_n(&was_woken, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *waits_with_full_queue(void *unused)
{
    aco_options_t detached = {.flags = ACO_DETACHED};
    CHECK(aco_scheduler_open() != NULL);
    CHECK(aco_spawn(is_woken, NULL, &detached) != NULL);
    for (int i = 0; i < RING_ENTRIES; i++)
        CHECK(aco_spawn(opens, fifo, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    return unused;
}

static void full_queue(void)
{
    pthread_t thread;
    aco_t *task;
    int fd, ms = 0;
    CHECK_EQ(pthread_create(&thread, NULL, waits_with_full_queue, NULL), 0);
    while ((task = __atomic_load_n(&woken_task, __ATOMIC_ACQUIRE)) == NULL)
        usleep(1000);
    until_asleep(&its_thread); /* in the ring */
    CHECK_EQ(aco_unpark(task), 0);
    while (!__atomic_load_n(&was_woken, __ATOMIC_ACQUIRE) && ms++ < 3000)
        usleep(1000);
    CHECK(was_woken);
    fd = open(fifo, O_WRONLY | O_CLOEXEC); /* the ends of opening */
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(fd);
}

#if !UNDER_TSAN
/* ---- Stops ---- */

/* Whether one of the kernel's threads for calls that block is in the process, and waits. */
static int has_waiting_worker(pid_t pid)
{
    char name[300], text[200];
    int found = 0;
    struct dirent *entry;
    DIR *tasks;
    snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
    tasks = opendir(name);
    CHECK(tasks != NULL);
    while (tasks && !found && (entry = readdir(tasks)) != NULL) {
        FILE *status;
        snprintf(name, sizeof name, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
        status = fopen(name, "re");
        if (status && fgets(text, sizeof text, status))
            found = strstr(text, "(iou-wrk-") != NULL && strstr(text, ") S ") != NULL;
        if (status)
            fclose(status);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static void *opens_fifo(void *unused)
{
    (void)unused;
    return opens(fifo);
}

/* A process is stopped and continues while it opens a FIFO: the kernel's thread is interrupted, no task is. */
static void stopped_meanwhile(void)
{
    int status, fd, ms = 0;
    pid_t pid = fork();
    if (pid == 0) {
        in_thread(opens_fifo);
        _exit(check_result("io_uring: stopped meanwhile"));
    }
    while (!has_waiting_worker(pid) && ms++ < 3000)
        usleep(1000);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(kill(pid, SIGSTOP), 0);
        CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
        CHECK_EQ(kill(pid, SIGCONT), 0);
        CHECK(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
    }
    fd = open(fifo, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fd);
}
#endif

enum { WATCHED = RING_ENTRIES + RING_ENTRIES / 2 };

static int watched_ends[WATCHED][2], watched_read;

static void *reads_byte_of(void *end)
{
    char byte = 0;
    CHECK_EQ(aco_io_read(*(const int *)end, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    watched_read++;
    return NULL;
}

/* In one turn more descriptors are to be watched than the queue has room for, and then no longer. The kernel refuses
 * so many of the calls that would make room. */
static void watches_many(int refused)
{
    aco_group_t group;
    for (int i = 0; i < WATCHED; i++) {
        make_pipe(watched_ends[i]);
        for (int end = 0; end < 2; end++)
            CHECK_EQ(aco_io_adopt(watched_ends[i][end]), 0);
    }
    watched_read = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < WATCHED; i++)
        member(&group, reads_byte_of, &watched_ends[i][0]);
    enters = 0;
    enter_error = EAGAIN;
    refused_enters = refused;
    aco_task_yield();
    CHECK_EQ(watched_read, 0);
    CHECK(refused_enters < refused || !refused);
    for (int i = 0; i < WATCHED; i++)
        CHECK_EQ(aco_io_write_all(watched_ends[i][1], "x", 1), 1);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(watched_read, WATCHED);
    CHECK_EQ(refused_enters, 0);
    for (int i = 0; i < WATCHED; i++) {
        char byte;
        CHECK_EQ(aco_io_close(watched_ends[i][1]), 0);
        CHECK_EQ(aco_io_read(watched_ends[i][0], &byte, 1), 0); /* nothing keeps the other end open */
        CHECK_EQ(aco_io_close(watched_ends[i][0]), 0);
    }
}

static void *fills_queue_with_watches(void *unused)
{
    static const int refused[] = {0, 1, 5, 200};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        watches_many(refused[i]);
    refused_enters = 0;
    return unused;
}

static void *is_cancelled(void *end)
{
    char byte;
    FAILS_WITH(aco_io_read(*(const int *)end, &byte, 1), ECANCELED);
    return NULL;
}

/* Descriptors are closed while the kernel takes nothing, and there is no memory. Nothing keeps them open after that,
 * although no task waits for a descriptor. */
static void closes_while_refused(int n)
{
    aco_group_t group;
    int closed = 0;
    aco_group_begin(&group, ACO_KEEP_GOING);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, watched_ends[i]), 0);
        CHECK_EQ(aco_io_adopt(watched_ends[i][0]), 0);
        member(&group, is_cancelled, &watched_ends[i][0]);
    }
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0); /* they are watched */
    enter_error = EAGAIN;
    refused_enters = 2 * n;
    for (int i = 0; i < n; i++) {
        allocations_left = 0;
        CHECK_EQ(aco_io_close(watched_ends[i][0]), 0);
    }
    allocations_left = -1;
    CHECK_EQ(aco_group_end(&group), 0);
    for (int turns = 0; closed < n && turns < 3000; turns++) {
        char byte;
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
        for (closed = 0; closed < n && read(watched_ends[closed][1], &byte, 1) == 0;)
            closed++;
    }
    CHECK_EQ(closed, n);
    CHECK_EQ(refused_enters, 0);
    refused_enters = 0;
    for (int i = 0; i < n; i++)
        close(watched_ends[i][1]);
}

/* An event comes that the kernel has not told yet. */
static void *closes_with_event_under_way(void *unused)
{
    aco_group_t group;
    struct pollfd look;
    int ends[2];
    make_pipe(ends);
    CHECK_EQ(aco_io_adopt(ends[0]), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, is_cancelled, ends);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0); /* it is watched */
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(aco_io_close(ends[0]), 0);
    look = (struct pollfd){ends[1], POLLOUT, 0};
    CHECK(poll(&look, 1, 0) == 1 && look.revents & POLLERR); /* nobody has it open to read */
    CHECK_EQ(aco_group_end(&group), 0);
    close(ends[1]);
    return unused;
}

static void *closes_many_while_refused(void *unused)
{
    closes_while_refused(1);
    closes_while_refused(10);
    closes_while_refused(WATCHED);
    return unused;
}

static int refusal; /* once a task has read, so many calls for the kernel fail, and an allocation */

static void *reads_and_reads_again(void *end)
{
    reads_byte_of(end);
    if (refusal) {
        refused_enters = refusal;
        refusal = allocations_left = 0;
    }
    return reads_byte_of(end);
}

/* Tasks wait for pipes, all but `not_owned` of which the runtime owns. */
static void watch_all(aco_group_t *group, aco_function_t reads, int not_owned)
{
    aco_group_begin(group, ACO_KEEP_GOING);
    for (int i = 0; i < WATCHED; i++) {
        make_pipe(watched_ends[i]);
        if (i >= not_owned)
            CHECK_EQ(aco_io_adopt(watched_ends[i][0]), 0);
        member(group, reads, &watched_ends[i][0]);
    }
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0); /* the kernel watches them */
    enter_error = EAGAIN;
}

static void write_to_all(void)
{
    for (int i = 0; i < WATCHED; i++)
        CHECK_EQ(write(watched_ends[i][1], "x", 1), 1);
}

/* The watch of a descriptor that is not owned ends after each wait, also while the kernel takes nothing and there is no
 * memory. That ends no later watch of the descriptor, and nothing keeps the descriptor open. */
static void *watches_again_while_refused(void *unused)
{
    aco_group_t group;
    watch_all(&group, reads_and_reads_again, WATCHED);
    watched_read = 0;
    refusal = 3 * WATCHED;
    write_to_all();
    do
        CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    while (refusal || refused_enters);
    CHECK_EQ(allocations_left, 0);
    allocations_left = -1;
    write_to_all();
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(watched_read, 2 * WATCHED);
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    for (int i = 0; i < WATCHED; i++) {
        struct pollfd look = {watched_ends[i][1], POLLOUT, 0};
        close(watched_ends[i][0]);
        CHECK(poll(&look, 1, 0) == 1 && look.revents & POLLERR); /* nobody has it open to read */
        close(watched_ends[i][1]);
    }
    return unused;
}

static void *closes_all_while_refused(void *unused)
{
    aco_group_t group;
    watch_all(&group, is_cancelled, 1);
    refused_enters = INT32_MAX;
    allocations_left = 0;
    for (int i = WATCHED - 1; i > 0; i--) {
        CHECK_EQ(aco_io_close(watched_ends[i][0]), 0);
        close(watched_ends[i][1]);
    }
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    close(watched_ends[0][0]);
    close(watched_ends[0][1]);
    CHECK_EQ(allocations_left, 0);
    allocations_left = -1;
    return unused;
}

/* The thread ends while ends of watches wait for room. */
static void *leaves_while_refused(void *unused)
{
    aco_t *task = aco_spawn(closes_all_while_refused, NULL, NULL);
    CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    CHECK(refused_enters > 0);
    refused_enters = 0;
    return unused;
}

static void ends_while_refused(void)
{
    pthread_t thread;
    int before = count_descriptors();
    long live_before = live;
    CHECK_EQ(pthread_create(&thread, NULL, leaves_while_refused, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count_descriptors(), before);
    CHECK_EQ(live, live_before);
}

/* ---- Ends of threads, forks ---- */

static int endless[2];
static char *into_freed;

static void *reads_endlessly(void *unused)
{
    aco_file_read(endless[0], into_freed, 8);
    CHECK(!"it came back");
    return unused;
}

static void *opens_endlessly(void *unused)
{
    aco_file_open(fifo, O_RDONLY, 0);
    CHECK(!"it came back");
    return unused;
}

static void *sleeps(void *unused)
{
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0);
    return unused;
}

/* aco_run() fails while operations are under way, and the thread ends. */
static void *ends_early(void *last_error)
{
    static const aco_function_t fns[] = {reads_endlessly, opens_endlessly, sleeps};
    for (int i = 0; i < 3; i++)
        CHECK(aco_spawn(fns[i], NULL, NULL) != NULL);
    enters = 0;
    enter_error = EBADF;
    failing_enter = 2;
    while (aco_run() == 0)
        continue;
    CHECK_EQ(errno, EBADF);
    failing_enter = 0;
    enter_error = (int)(intptr_t)last_error;
    refused_enters = enter_error ? 3 : 0;
    return NULL;
}

/* A thread that ends lets the kernel write nowhere afterwards, also if that cannot cancel all at once. */
static void thread_ends(int error)
{
    pthread_t thread;
    int before = count_descriptors();
    into_freed = malloc(8);
    CHECK_EQ(pipe2(endless, O_CLOEXEC), 0);
    CHECK_EQ(pthread_create(&thread, NULL, ends_early, (void *)(intptr_t)error), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(refused_enters, 0);
    memset(into_freed, '?', 8);
    CHECK_EQ(write(endless[1], "late", 4), 4);
    usleep(2000);
    CHECK(memcmp(into_freed, "????????", 8) == 0);
    free(into_freed);
    close(endless[0]);
    close(endless[1]);
    CHECK_EQ(count_descriptors(), before);
}

/* The child tries what would take events and room in the ring from the parent, whose tasks wait. */
static void harms_parent(int watched)
{
    char byte;
    FAILS_WITH(aco_io_read(watched, &byte, 1), EPERM);
    FAILS_WITH(aco_io_wait_readable(watched), EPERM);
    FAILS_WITH(aco_io_adopt(endless[1]), EPERM);
    FAILS_WITH(aco_file_read(endless[0], &byte, 1), EPERM);
    FAILS_WITH(aco_file_open("/dev/null", O_RDONLY, 0), EPERM);
    CHECK_EQ(aco_io_close(watched), 0);
    FAILS_WITH(fcntl(watched, F_GETFD), EBADF);
}

static void *reads_watched(void *fds)
{
    char byte;
    CHECK_EQ(aco_io_read(((const int *)fds)[0], &byte, 1), 1);
    return NULL;
}

static void *forks_beside_waits(void *watched)
{
    enum { HAS_TRIED_ALL = 42 }; /* not 0, with which the child ends if its last thread does */
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        harms_parent(((const int *)watched)[0]);
        _exit(check_result("io_uring: in the child") == 0 ? HAS_TRIED_ALL : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == HAS_TRIED_ALL);
    CHECK_EQ(write(((const int *)watched)[1], "x", 1), 1);
    CHECK_EQ(write(endless[1], "yes", 3), 3);
    return NULL;
}

/* What the parent waits for comes, by epoll and by the ring, whatever its child does meanwhile. */
static void *is_not_harmed(void *unused)
{
    char text[8];
    int watched[2];
    aco_scope_t scope; /* what the child takes never comes */
    aco_group_t group;
    CHECK_EQ(pipe2(endless, O_CLOEXEC), 0);
    make_pipe(watched);
    CHECK_EQ(aco_io_adopt(watched[0]), 0);
    CHECK_EQ(aco_io_adopt(watched[1]), 0);
    CHECK_EQ(aco_scope_begin(&scope, aco_after(30 * ACO_SECOND)), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, reads_watched, watched);
    member(&group, forks_beside_waits, watched);
    CHECK_EQ(aco_file_read(endless[0], text, 8), 3);
    CHECK_EQ(aco_group_end(&group), 0);
    CHECK_EQ(aco_scope_end(&scope), 0);
    close(endless[0]);
    close(endless[1]);
    CHECK_EQ(aco_io_close(watched[0]), 0);
    CHECK_EQ(aco_io_close(watched[1]), 0);
    return unused;
}

#if !UNDER_TSAN /* it allows a forked process no new threads */
static void *forks(void *unused)
{
    pthread_t thread;
    union {
        aco_function_t fn;
        void *p;
    } task = {uses_file};
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        enters = 0;
        if (pthread_create(&thread, NULL, thread_runs, task.p) != 0 || pthread_join(thread, NULL) != 0)
            _exit(2);
        CHECK(enters > 0); /* a ring of its own */
        _exit(check_result("io_uring: after fork()"));
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(write(endless[1], "yes", 3), 3);
    return unused;
}

static void *forking(void *unused)
{
    char text[8];
    aco_group_t group;
    CHECK_EQ(pipe2(endless, O_CLOEXEC), 0);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, forks, NULL);
    CHECK_EQ(aco_file_read(endless[0], text, 8), 3);
    CHECK_EQ(aco_group_end(&group), 0);
    close(endless[0]);
    close(endless[1]);
    return unused;
}

#endif

/* ---- A time limit ---- */

/* The kernel waits for all of it: the thread does not ask again and again. */
static void *waits_once(void *unused)
{
    int ends[2], before = enters;
    aco_scope_t scope;
    char byte;
    make_pipe(ends);
    enter_error = EBADF;
    failing_enter = before + 100; /* rather than for ever */
    CHECK_EQ(aco_scope_begin(&scope, aco_after(50 * ACO_MILLISECOND)), 0);
    FAILS_WITH(aco_io_read(ends[0], &byte, 1), ETIMEDOUT);
    CHECK_EQ(aco_scope_end(&scope), 0);
    failing_enter = 0;
    CHECK(enters - before < 10);
    close_both(ends);
    return unused;
}

static void *waits_once_flagged(void *unused)
{
    uses_file(unused);
    leave_flag();
    return waits_once(unused);
}

/* ---- A refusal when something has ended ---- */

static void *writes_and_refuses(void *fd)
{
    has_read = 0;
    CHECK_EQ(aco_sleep(ACO_MILLISECOND), 0); /* the read is submitted */
    enter_error = EAGAIN;
    refused_enters = 1;
    CHECK_EQ(write((int)(intptr_t)fd, "x", 1), 1); /* the kernel flags what it puts off */
    for (int turns = 0; !has_read && turns < 1000; turns++)
        aco_sleep(ACO_MILLISECOND);
    CHECK(has_read);
    aco_file_sync(0); /* if it has not been asked, it is now */
    return NULL;
}

static void *waits_for_byte(void *fd)
{
    char byte;
    FAILS_WITH(aco_io_read((int)(intptr_t)fd, &byte, 1), ECANCELED);
    return NULL;
}

/* The thread waits for a descriptor too, and asks again although the refused call had nothing to submit. */
static void *refused_once_ended(void *unused)
{
    int ends[2], other[2];
    aco_group_t group;
    char byte;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); /* blocking ends */
    make_pipe(other);
    aco_group_begin(&group, ACO_KEEP_GOING);
    member(&group, waits_for_byte, (void *)(intptr_t)other[0]);
    member(&group, writes_and_refuses, (void *)(intptr_t)ends[1]);
    CHECK_EQ(aco_file_read(ends[0], &byte, 1), 1);
    has_read = 1;
    refused_enters = 0;
    CHECK_EQ(aco_scope_cancel(&group.scope), 0);
    CHECK_EQ(aco_group_end(&group), 0);
    has_read = 0;
    close_both(other);
    close_both(ends);
    return unused;
}

/* ---- All ---- */

static void by_ring(void)
{
    static const aco_function_t tests[] = {uses_file, many,       in_halves,          closing,           cancelling,
                                           mixed,     waits_once, waits_once_flagged, refused_once_ended};
    enters = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        in_thread(tests[i]);
    CHECK(enters > 0);
}

static void by_older_kernels(void)
{
    unknown_flags = IORING_SETUP_DEFER_TASKRUN;
    by_ring();
    unknown_flags |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL;
    by_ring();
    unknown_flags = 0;
}

/* The kernel has no io_uring for this process. */
static int is_refused_here(void)
{
    struct io_uring ring;
    int error = -__real_io_uring_queue_init_params(8, &ring, &(struct io_uring_params){0});
    if (!error) {
        io_uring_queue_exit(&ring);
        return 0;
    }
    printf("skipped: io_uring: %s\n", strerror(error));
    unlink(fifo);
    rmdir(folder);
    return 1;
}

int main(void)
{
    static void (*const in_children[])(void) = {
        refused,      refused_by_seccomp, lacks_operations, wrong_variable,
        lacks_memory, by_older_kernels,   lacks_workers,    lacks_workers_and_pool};
    const char *parent = getenv("TMPDIR");
    pthread_t thread;
    REPLACE(preadv2);
    CHECK_EQ(unsetenv("ACO_FILES"), 0);
    snprintf(folder, sizeof folder, "%.40s/acorn-io-uring-XXXXXX", parent && strlen(parent) < 40 ? parent : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(renamed, sizeof renamed, "%s/renamed", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    if (is_refused_here())
        return 77;
    for (size_t i = 0; i < sizeof in_children / sizeof *in_children; i++)
        in_child(in_children[i]);
    CHECK_EQ(setenv("ACO_FILES", "uring", 1), 0);
    by_ring();
    every_failure();
    in_thread(asks_seldom);
    in_thread(is_not_harmed);
    CHECK_EQ(setenv("ACO_POLLER", "uring", 1), 0);
    by_ring();
    every_failure();
    in_thread(asks_seldom);
    in_thread(is_not_harmed);
    in_thread(fills_queue_with_watches);
    in_thread(closes_with_event_under_way);
    in_thread(closes_many_while_refused);
    in_thread(watches_again_while_refused);
    ends_while_refused();
    CHECK_EQ(unsetenv("ACO_POLLER"), 0);
    CHECK_EQ(pthread_create(&thread, NULL, foreign_loop, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    in_thread(begins_loop); /* an operation that is interrupted meanwhile is submitted again before the loop waits */
    full_queue();
#if !UNDER_TSAN
    stopped_meanwhile();
#endif
    thread_ends(0);
    thread_ends(EAGAIN);
    thread_ends(EBUSY);
#if !UNDER_TSAN
    in_thread(forking);
#endif
    unlink(path);
    unlink(renamed);
    unlink(fifo);
    CHECK_EQ(rmdir(folder), 0);
    return check_result("io_uring");
}
