/* Failures of calls to the system that the libraries make seldom: of sets of threads (processors, signals), files,
 * children, addresses, ports shared by a process, traces and the watchdog. Each use of each call fails with each errno
 * of the table below. Some failures nobody may notice; the others the library's call reports, and the same works when
 * it is made again. (every_failure.c has the core's calls, io_failure.c those on descriptors, http_failure.c those of
 * servers. system_failures.py has the reasons for the calls that no test makes fail.) */
#include "replace.h" /* first */

#include "capture.h"
#include "io_tests.h"
#include "threads_tests.h"

#include <aco/offload.h>
#include <aco/process.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- What fails ---- */

enum {
    UNNOTICED,
    NOTICED, /* the library's call fails with it */
    EITHER
};
typedef struct failure {
    int error, effect;
} failure_t;

static int processors(void), signals(void), files(void), positions(void), children(void), kills(void), zones(void),
    zone_names(void), ports(void), traces(void), watches(void);

#define EACH(F)                                                                                                        \
    F(sched_getaffinity, processors, {EINVAL, UNNOTICED}, {EPERM, UNNOTICED})                                          \
    F(sched_setaffinity, processors, {EINVAL, UNNOTICED}, {EPERM, UNNOTICED})                                          \
    F(fopen, processors, {ENOENT, UNNOTICED}, {EMFILE, UNNOTICED}, {ENOMEM, UNNOTICED})                                \
    F(opendir, processors, {ENOENT, UNNOTICED}, {EMFILE, UNNOTICED})                                                   \
    F(readdir, processors, {EIO, UNNOTICED})                                                                           \
    F(closedir, processors, {EIO, UNNOTICED})                                                                          \
    F(sigwaitinfo, signals, {EINTR, UNNOTICED})                                                                        \
    F(sigtimedwait, signals, {EINTR, UNNOTICED}, {EAGAIN, UNNOTICED})                                                  \
    F(stat, files, {EINTR, UNNOTICED}, {EACCES, NOTICED}, {ENOMEM, NOTICED})                                           \
    F(closedir, files, {EINTR, UNNOTICED}, {EIO, UNNOTICED})                                                           \
    F(lseek, positions, {ESPIPE, UNNOTICED})                                                                           \
    F(waitpid, children, {EINTR, UNNOTICED}, {ECHILD, EITHER})                                                         \
    F(kill, kills, {ESRCH, NOTICED}, {EPERM, NOTICED})                                                                 \
    F(if_nametoindex, zones, {ENODEV, EITHER}, {EMFILE, EITHER}, {ENFILE, EITHER}, {ENOMEM, EITHER})                   \
    F(if_indextoname, zone_names, {ENXIO, UNNOTICED}, {EMFILE, UNNOTICED})                                             \
    F(opendir, ports, {ENOENT, UNNOTICED}, {EMFILE, NOTICED}, {ENFILE, NOTICED}, {ENOMEM, NOTICED})                    \
    F(readdir, ports, {EIO, NOTICED})                                                                                  \
    F(closedir, ports, {EIO, UNNOTICED})                                                                               \
    F(prctl, traces, {EINVAL, UNNOTICED})                                                                              \
    F(ftruncate, traces, {EIO, UNNOTICED}, {EINTR, UNNOTICED})                                                         \
    F(pthread_kill, watches, {ESRCH, UNNOTICED}, {EAGAIN, UNNOTICED})

static const struct entry {
    const char *name;
    int (*scenario)(void); /* makes the calls: 0, or the errno of the library's call that has failed first */
    failure_t failures[4];
} table[] = {
#define ENTRY(name, scenario, ...) {#name, scenario, {__VA_ARGS__}},
    EACH(ENTRY)};
enum { ENTRIES = sizeof table / sizeof *table };

static const char *target = ""; /* its call number `position` fails with `error` */
static int position, error, uses; /* `uses` is atomic */
static int is_counting; /* else calls are the test's own; atomic */

static int fails(const char *name)
{
    if (!load(&is_counting) || strcmp(target, name) != 0)
        return 0;
    if (__atomic_add_fetch(&uses, 1, __ATOMIC_RELAXED) != position)
        return 0;
    errno = error;
    return 1;
}

#define FAILS(type, failed, name, parameters, arguments)                                                               \
    FAILING(type, name, parameters, arguments, fails(#name), failed)
FAILS(int, -1, sched_getaffinity, (pid_t thread, size_t sz, void *all), (thread, sz, all))
FAILS(int, -1, sched_setaffinity, (pid_t thread, size_t sz, const void *all), (thread, sz, all))
FAILS(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
FAILS(DIR *, NULL, opendir, (const char *path), (path))
FAILS(struct dirent *, NULL, readdir, (DIR *folder), (folder))
FAILS(int, (real_closedir(folder), errno = error, -1), closedir, (DIR *folder), (folder))
FAILS(int, -1, sigwaitinfo, (const sigset_t *set, void *info), (set, info))
FAILS(int, -1, sigtimedwait, (const sigset_t *set, void *info, const struct timespec *time), (set, info, time))
FAILS(int, -1, stat, (const char *path, struct stat *status), (path, status))
FAILS(int64_t, -1, lseek, (int fd, int64_t offset, int from), (fd, offset, from))
FAILS(pid_t, -1, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
FAILS(int, -1, kill, (pid_t pid, int number), (pid, number))
FAILS(unsigned, 0, if_nametoindex, (const char *name), (name))
FAILS(char *, NULL, if_indextoname, (unsigned index, char *name), (index, name))
FAILS(int, -1, ftruncate, (int fd, int64_t sz), (fd, sz))
FAILS(int, error, pthread_kill, (pthread_t thread, int number), (thread, number))

REAL(prctl);
static int failing_prctl(int operation, ...) /* asks for a name */
{
    va_list list;
    char *name;
    va_start(list, operation);
    name = va_arg(list, char *);
    va_end(list);
    return fails("prctl") ? -1 : real_prctl(operation, name, 0, 0, 0);
}

static void replace_system(void)
{
#define REPLACE_ONE(name, scenario, ...)                                                                               \
    if (aco__system.name != failing_##name)                                                                            \
        REPLACE(name);
    EACH(REPLACE_ONE)
}

static int first_error; /* what a call of the library reported first; 0: none */

static int is_bad(int64_t result)
{
    if (result < 0 && !first_error)
        first_error = errno;
    return result < 0;
}

static void *in_thread(void *fn)
{
    add(&is_counting, 1);
    run_task(*(aco_function_t *)fn, NULL);
    is_counting = 0;
    return NULL;
}

/* Runs it as a task of a new thread, with a counted system. */
static int in_task(aco_function_t fn)
{
    pthread_t thread;
    first_error = 0;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, &fn), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return first_error;
}

/* ---- Sets of threads ---- */

static int calls;

static void *note_call(void *arg)
{
    return arg;
}

static void *uses_processor(void *arg)
{
    add(&calls, 1);
    CHECK_EQ(aco_offload(note_call, NULL, NULL, NULL), 0); /* its thread may run anywhere */
    return arg;
}

static int processors(void)
{
    aco_threads_options_t options = {0};
    cpu_set_t before, after;
    int is_affinity = strcmp(target, "sched_setaffinity") == 0;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    options.flags = ACO_THREADS_PIN;
    calls = 0;
    add(&is_counting, 1);
    errno = ENOTUNIQ;
    CHECK(aco_threads_usable() >= 1);
    CHECK_EQ(errno, ENOTUNIQ);
    CHECK_EQ(aco_threads_run(2, uses_processor, NULL, &options), 0);
    is_counting = 0;
    CHECK_EQ(calls, 2);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after) || is_affinity); /* the call that sets it back may have failed */
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    return 0;
}

static int is_woken;

/* The first signal stops the set, and the second one cancels it. */
static void *kills_itself(void *arg)
{
    aco_stop_t stop;
    CHECK_EQ(aco_stop_begin(&stop, ACO_FOREVER), 0);
    CHECK_EQ(kill(getpid(), SIGTERM), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    CHECK_EQ(aco_stop_end(&stop), 0);
    is_woken = 1;
    CHECK_EQ(kill(getpid(), SIGINT), 0);
    FAILS_WITH(aco_sleep(60 * ACO_SECOND), ECANCELED);
    is_woken = 2;
    return arg;
}

static int signals(void)
{
    aco_threads_options_t options = {0};
    options.flags = ACO_THREADS_INTERRUPTIBLE;
    options.drain_ns = 60 * ACO_SECOND;
    is_woken = 0;
    add(&is_counting, 1);
    FAILS_WITH(aco_threads_run(1, kills_itself, NULL, &options), EINTR);
    is_counting = 0;
    CHECK_EQ(is_woken, 2);
    return 0;
}

/* ---- Files ---- */

static void *looks_at_files(void *arg)
{
    aco_file_status_t status;
    aco_dir_t *dir;
    if (!is_bad(aco_file_stat("/", &status)))
        CHECK(S_ISDIR(status.mode));
    dir = aco_dir_open("/");
    CHECK(dir != NULL);
    if (dir)
        CHECK_EQ(aco_dir_close(dir), 0);
    return arg;
}

static const char way[] = "ACO_FILES"; /* each thread reads it at its first call */

static int files(void)
{
    CHECK_EQ(setenv(way, "pool", 1), 0);
    return in_task(looks_at_files);
}

/* Half of what is asked for is in memory, or nothing is known. */
static int knows_nothing;

static ssize_t half_of_it(int fd, const struct iovec *parts, int count, int64_t offset, int flags)
{
    size_t n = parts->iov_len / 2;
    (void)count, (void)flags;
    if (knows_nothing)
        return 0;
    return offset < 0 ? read(fd, parts->iov_base, n) : pread(fd, parts->iov_base, n, offset);
}

static const char digits[] = "0123456789abcdef";

static void *reads_and_writes(void *file)
{
    int fd = *(int *)file;
    for (knows_nothing = 0; knows_nothing < 2; knows_nothing++) {
        char text[17] = "";
        ssize_t n = 0, part;
        CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
        CHECK_EQ(aco_file_write(fd, digits, 8), 8);
        CHECK_EQ(aco_file_pwrite(fd, digits + 8, 8, 8), 8);
        CHECK_EQ(aco_file_pread(fd, text, 16, 0), 16);
        CHECK_EQ(strcmp(text, digits), 0);
        CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
        memset(text, 0, sizeof text);
        while (n < 16 && (part = aco_file_read(fd, text + n, (size_t)(16 - n))) > 0)
            n += part;
        CHECK_EQ(strcmp(text, digits), 0);
    }
    return NULL;
}

static void *with_a_file(void *arg)
{
    FILE *file = tmpfile();
    int fd = fileno(file);
    reads_and_writes(&fd);
    fclose(file);
    return arg;
}

static int positions(void)
{
    CHECK_EQ(unsetenv(way), 0); /* by io_uring where there is one */
    return in_task(with_a_file);
}

/* ---- Children ---- */

static void *starts_a_child(void *arg)
{
    static const char *const command[] = {"sh", "-c", "exit 3", NULL};
    aco_process_t process;
    CHECK_EQ(aco_process_start(&process, command, 0, NULL), 0);
    if (is_bad(aco_process_wait(&process)))
        CHECK_EQ(aco_process_wait(&process), 0);
    CHECK(WIFEXITED(process.status) && WEXITSTATUS(process.status) == 3);
    CHECK_EQ(aco_process_start(&process, command, 0, NULL), 0);
    aco_process_end(&process, ACO_SECOND);
    return arg;
}

static int children(void)
{
    int failed = in_task(starts_a_child);
    FAILS_WITH(waitpid(-1, NULL, WNOHANG), ECHILD); /* none is left */
    CHECK(position != 1 || error == EINTR || failed); /* aco_process_wait() tells it, aco_process_end() goes on */
    return failed;
}

static int has_no_pidfd_signals(int process, int number, void *information, unsigned flags)
{
    (void)process, (void)number, (void)information, (void)flags;
    errno = ENOSYS;
    return -1;
}

static void *signals_a_child(void *arg)
{
    static const char *const command[] = {"sleep", "60", NULL};
    aco_process_t process;
    for (unsigned flags = 0; flags <= ACO_PROCESS_GROUP; flags += ACO_PROCESS_GROUP) {
        CHECK_EQ(aco_process_start(&process, command, flags, NULL), 0);
        if (is_bad(aco_process_signal(&process, SIGKILL)))
            CHECK_EQ(aco_process_signal(&process, SIGKILL), 0);
        CHECK_EQ(aco_process_wait(&process), 0);
        CHECK(WIFSIGNALED(process.status) && WTERMSIG(process.status) == SIGKILL);
    }
    return arg;
}

static int kills(void)
{
    __typeof__(aco__system.pidfd_send_signal) before = aco__system.pidfd_send_signal;
    int failed;
    aco__system.pidfd_send_signal = has_no_pidfd_signals;
    failed = in_task(signals_a_child);
    aco__system.pidfd_send_signal = before;
    return failed;
}

/* ---- Addresses ---- */

/* A number is a zone, too; of a name, the reason why it is not known is told. */
static void *dials_zones(void *arg)
{
    char zone[IF_NAMESIZE], host[64];
    int fd = aco_io_bind("udp6", "::1%1", "0", NULL);
    CHECK(fd >= 0 || errno == EADDRNOTAVAIL || errno == EINVAL); /* the system may have no IPv6 */
    if (fd >= 0)
        CHECK_EQ(aco_io_close(fd), 0);
    CHECK(if_indextoname(1, zone) != NULL);
    snprintf(host, sizeof host, "::1%%%s", zone);
    fd = aco_io_bind("udp6", host, "0", NULL);
    if (fd < 0 && errno != EADDRNOTAVAIL)
        (void)is_bad(fd);
    else if (fd >= 0)
        CHECK_EQ(aco_io_close(fd), 0);
    return arg;
}

static int zones(void)
{
    int failed = in_task(dials_zones);
    CHECK(position != 2 || failed == (error == ENODEV ? EINVAL : error)); /* the first one is a number */
    return failed == EINVAL ? error : failed;
}

static int zone_names(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_scope_id = 1};
    char text[ACO_IO_ADDRESS_SIZE], wanted[64], zone[IF_NAMESIZE];
    CHECK_EQ(inet_pton(AF_INET6, "fe80::1", &address.sin6_addr), 1);
    snprintf(wanted, sizeof wanted, "[fe80::1%%%s]:0", position == 1 ? "1" : if_indextoname(1, zone));
    add(&is_counting, 1);
    CHECK_EQ(aco_io_text_of_address((struct sockaddr *)&address, sizeof address, text, sizeof text), 0);
    is_counting = 0;
    if (uses) /* else another call's turn */
        CHECK_EQ(strcmp(text, wanted), 0);
    return 0;
}

/* The second listener of a process shares the first one's port, which another process must not. */
static void *share_a_port(void *arg)
{
    static const aco_io_options_t shared = {.flags = ACO_IO_REUSEPORT};
    char address[ACO_IO_ADDRESS_SIZE];
    int first = aco_io_listen("tcp4", "127.0.0.1", "0", &shared), second = -1;
    CHECK(first >= 0);
    if (aco_io_local_address(first, address, sizeof address) == 0)
        second = aco_io_listen("tcp4", "127.0.0.1", strrchr(address, ':') + 1, &shared);
    if (is_bad(second))
        second = aco_io_listen("tcp4", "127.0.0.1", strrchr(address, ':') + 1, &shared);
    CHECK(second >= 0);
    CHECK_EQ(aco_io_close(first), 0);
    CHECK_EQ(aco_io_close(second), 0);
    return arg;
}

static int ports(void)
{
    return in_task(share_a_port);
}

/* ---- Traces and the watchdog ---- */

static const char trace_file[] = "ACO_TRACE", called_again[] = "trace";
static const char *program;

static ssize_t has_no_room(int fd, const void *p, size_t n, int64_t offset)
{
    (void)fd, (void)p, (void)n, (void)offset;
    errno = ENOSPC;
    return -1;
}

/* In a process of its own: the trace begins when that does. Its last write, or the first one, finds no room. */
static int traces(void)
{
    char at[16], number[16], path[64];
    int status = -1;
    pid_t pid;
    snprintf(at, sizeof at, "%d", position);
    snprintf(number, sizeof number, "%d", error);
    snprintf(path, sizeof path, "/tmp/acorn-system-failure-%d", (int)getpid());
    pid = fork();
    if (pid == 0) {
        setenv(trace_file, path, 1);
        execl(program, program, called_again, target, at, number, (char *)NULL);
        _exit(1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 100);
    uses = WEXITSTATUS(status);
    unlink(path);
    return 0;
}

static void *yields(void *arg)
{
    for (int i = 0; i < 2000; i++)
        aco_yield();
    return arg;
}

/* The exit status is the number of uses. */
static int traced(char **arguments)
{
    aco_t *co;
    target = arguments[0];
    position = atoi(arguments[1]);
    error = atoi(arguments[2]);
    replace_system();
    aco__system.pwrite = has_no_room;
    is_counting = 1;
    capture();
    co = aco_new(yields, NULL, NULL);
    while (aco_state(co) != ACO_STATE_DONE)
        (void)aco_send(co, NULL);
    aco_destroy(co);
    CHECK(strstr(release(), "the trace ends here: No space left on device") != NULL);
    _exit(check_failures ? 100 : uses);
}

static void *hogs(void *arg)
{
    int64_t end = aco_after(30 * ACO_SECOND);
    while (!strstr(look_at_captured(), "has run for") && aco_now() < end)
        continue;
    return arg;
}

/* Without the signal the report has no place in the code. */
static int watches(void)
{
    capture();
    add(&is_counting, 1);
    CHECK_EQ(aco_watchdog(8 * ACO_MILLISECOND), 0);
    run_task(hogs, NULL);
    CHECK_EQ(aco_watchdog(0), 0);
    is_counting = 0;
    CHECK(strstr(release(), "without yielding or waiting") != NULL);
    return 0;
}

/* ---- All of them ---- */

static int is_as_it_should(int outcome, const failure_t *failure)
{
    return failure->effect == UNNOTICED ? !outcome
                                        : outcome == failure->error || (failure->effect == EITHER && !outcome);
}

/* Returns how many uses the call has. */
static int fail_everywhere(const struct entry *entry, const failure_t *failure)
{
    target = entry->name;
    error = failure->error;
    for (position = 1;; position++) {
        int outcome, before = check_failures;
        uses = 0;
        outcome = entry->scenario();
        if (uses < position) {
            CHECK_EQ(position > 1, 1); /* the scenario makes the call */
            return position - 1;
        }
        if (!is_as_it_should(outcome, failure))
            CHECK(!"the outcome");
        if (check_failures != before)
            fprintf(stderr, "%s(), use %d: %s: %s\n", entry->name, position, strerror(error), strerror(outcome));
    }
}

int main(int argc, char **argv)
{
    int injected = 0;
    program = argv[0];
    if (argc > 4 && strcmp(argv[1], called_again) == 0)
        return traced(argv + 2);
    replace_system();
    aco__system.preadv2 = half_of_it;
    for (const struct entry *entry = table; entry < table + ENTRIES; entry++) {
        int of_this = 0, uses_of_it = 0;
        if (argc > 1 && strcmp(argv[1], entry->name) != 0)
            continue;
        for (const failure_t *failure = entry->failures; failure < entry->failures + 4 && failure->error; failure++) {
            uses_of_it = fail_everywhere(entry, failure);
            of_this += uses_of_it;
        }
        printf("%s: %d uses, %d failures injected\n", entry->name, uses_of_it, of_this);
        injected += of_this;
    }
    printf("system_failure: %d failures\n", injected);
    return check_result("system_failure");
}
