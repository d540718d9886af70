/* Promises: threads of a run are sent signals, see them and take them as the kernel's do. Random sequences of calls of
 * two threads, which block all the signals, have the same results in the kernel and in a simulation. The signals are
 * sent to one of the threads or to their process. signalfds are read and polled, alone and by an epoll. */
#include "system/system.h"

#include "check.h"
#include "random.h"
#include "sim_runs.h"

#include "aco/sim.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SEQUENCES = 2000, CALLS = 30, THREADS = 2, FILES = 3, SIGNALS = 4, TEXT = 64 };
enum { RAISE, SEND_TO_THREAD, SEND_TO_PROCESS, READ, POLL, EPOLL, PENDING, WAIT, KINDS };

static const int signals[SIGNALS] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM};
static const unsigned files[FILES] = {15, 6, 9}; /* of which signals: bits */
static const char *const names[KINDS] = {"raise", "pthread_kill", "kill",       "read",
                                         "poll",  "epoll_wait",   "sigpending", "sigtimedwait"};

typedef struct call {
    int kind, thread, signal, other; /* other: a file or a thread */
} call_t;

typedef struct sequence {
    call_t calls[CALLS];
    char results[CALLS][TEXT];
    int fds[FILES], epoll, go_on, done; /* the last two: eventfds between the threads */
    pthread_t threads[THREADS];
    int next; /* the next call; CALLS: there is none any more */
} sequence_t;

static void random_sequence(sequence_t *sequence, uint64_t seed)
{
    random_t random = {seed};
    for (int i = 0; i < CALLS; i++)
        sequence->calls[i] = (call_t){(int)below(&random, KINDS), (int)below(&random, THREADS),
                                      (int)below(&random, SIGNALS), (int)below(&random, FILES)};
}

static void set_of(sigset_t *set, unsigned bits)
{
    sigemptyset(set);
    for (int i = 0; i < SIGNALS; i++)
        if (bits >> i & 1)
            sigaddset(set, signals[i]);
}

/* ---- One call ---- */

static void read_file(const sequence_t *sequence, const call_t *call, char *result)
{
    struct signalfd_siginfo info;
    ssize_t n = aco__system.read(sequence->fds[call->other], &info, sizeof info);
    snprintf(result, TEXT, "%d", n == sizeof info ? (int)info.ssi_signo : -errno);
}

static void poll_file(const sequence_t *sequence, const call_t *call, char *result)
{
    struct pollfd fd = {sequence->fds[call->other], POLLIN, 0};
    int n = aco__system.poll(&fd, 1, 0);
    snprintf(result, TEXT, "%d, %x", n, (unsigned)fd.revents);
}

static void look_by_epoll(const sequence_t *sequence, char *result)
{
    struct epoll_event events[FILES];
    unsigned files_seen = 0;
    int n = aco__system.epoll_wait(sequence->epoll, events, FILES, 0);
    for (int i = 0; i < n; i++)
        files_seen |= 1U << events[i].data.u32;
    snprintf(result, TEXT, "%d, files %x", n, files_seen);
}

static void look_at_pending(char *result)
{
    sigset_t set;
    unsigned bits = 0;
    CHECK(aco__system.sigpending(&set) == 0);
    for (int i = 0; i < SIGNALS; i++)
        bits |= sigismember(&set, signals[i]) ? 1U << i : 0;
    snprintf(result, TEXT, "%x", bits);
}

static void wait_for_signal(const call_t *call, char *result)
{
    const struct timespec now = {0, 0};
    sigset_t set;
    int signal;
    set_of(&set, files[call->other]);
    signal = aco__system.sigtimedwait(&set, NULL, &now);
    snprintf(result, TEXT, "%d", signal < 0 ? -errno : signal);
}

static void make_call(sequence_t *sequence, int i)
{
    const call_t *call = &sequence->calls[i];
    const int signal = signals[call->signal];
    char *result = sequence->results[i];
    if (call->kind == RAISE)
        snprintf(result, TEXT, "%d", aco__system.raise(signal));
    else if (call->kind == SEND_TO_THREAD)
        snprintf(result, TEXT, "%d", aco__system.pthread_kill(sequence->threads[call->other % THREADS], signal));
    else if (call->kind == SEND_TO_PROCESS)
        snprintf(result, TEXT, "%d", aco__system.kill(aco__system.getpid(), signal));
    else if (call->kind == READ)
        read_file(sequence, call, result);
    else if (call->kind == POLL)
        poll_file(sequence, call, result);
    else if (call->kind == EPOLL)
        look_by_epoll(sequence, result);
    else if (call->kind == PENDING)
        look_at_pending(result);
    else
        wait_for_signal(call, result);
}

/* ---- A sequence, in either world ---- */

static void tell(int fd)
{
    const uint64_t one = 1;
    CHECK(aco__system.write(fd, &one, sizeof one) == sizeof one);
}

static void await(int fd)
{
    uint64_t n;
    CHECK(aco__system.read(fd, &n, sizeof n) == sizeof n);
}

/* The next calls, up to one of the other thread: it is woken once for all of its calls that follow one another. */
static void make_calls_of(sequence_t *sequence, int thread)
{
    for (; sequence->next < CALLS && sequence->calls[sequence->next].thread == thread; sequence->next++)
        make_call(sequence, sequence->next);
}

static void *make_second_calls(void *arg)
{
    sequence_t *sequence = arg;
    for (await(sequence->go_on); sequence->next < CALLS; await(sequence->go_on)) {
        make_calls_of(sequence, 1);
        tell(sequence->done);
    }
    return NULL;
}

static void make_calls(sequence_t *sequence)
{
    sequence->threads[0] = pthread_self();
    CHECK(aco__system.pthread_create(&sequence->threads[1], NULL, make_second_calls, sequence) == 0);
    sequence->next = 0;
    for (make_calls_of(sequence, 0); sequence->next < CALLS; make_calls_of(sequence, 0)) {
        tell(sequence->go_on);
        await(sequence->done);
    }
    tell(sequence->go_on);
    CHECK(aco__system.pthread_join(sequence->threads[1], NULL) == 0);
}

/* The second file by its edges. */
static void open_files(sequence_t *sequence)
{
    sequence->epoll = aco__system.epoll_create1(EPOLL_CLOEXEC);
    sequence->go_on = aco__system.eventfd(0, EFD_CLOEXEC);
    sequence->done = aco__system.eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < FILES; i++) {
        struct epoll_event event = {EPOLLIN | (i == 1 ? (uint32_t)EPOLLET : 0), {.u32 = (uint32_t)i}};
        sigset_t set;
        set_of(&set, files[i]);
        sequence->fds[i] = aco__system.signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        CHECK(aco__system.epoll_ctl(sequence->epoll, EPOLL_CTL_ADD, sequence->fds[i], &event) == 0);
    }
}

static void close_files(sequence_t *sequence)
{
    struct signalfd_siginfo info;
    while (aco__system.read(sequence->fds[0], &info, sizeof info) > 0) /* nothing is left for the next one */
        continue;
    for (int i = 0; i < FILES; i++)
        aco__system.close(sequence->fds[i]);
    aco__system.close(sequence->epoll);
    aco__system.close(sequence->go_on);
    aco__system.close(sequence->done);
}

static void run_sequence(sequence_t *sequence)
{
    sigset_t set, before;
    set_of(&set, files[0]);
    CHECK(aco__system.pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
    open_files(sequence);
    make_calls(sequence);
    close_files(sequence);
    CHECK(aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void run_in_simulation(aco_sim_t *sim, void *sequence)
{
    (void)sim;
    run_sequence(sequence);
}

static int differ(const sequence_t *kernel, const sequence_t *simulated, uint64_t seed)
{
    for (int i = 0; i < CALLS; i++) {
        const call_t *call = &kernel->calls[i];
        if (strcmp(kernel->results[i], simulated->results[i]) == 0)
            continue;
        fprintf(stderr, "seed %llu, call %d: thread %d: %s(signal %d, %d): %s, not %s\n", (unsigned long long)seed, i,
                call->thread, names[call->kind], signals[call->signal], call->other, kernel->results[i],
                simulated->results[i]);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static sequence_t kernel, simulated;
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : sim_runs(SEQUENCES);
    aco_sim_options_t options = {0};
    int differing = 0;
    for (uint64_t seed = 1; seed <= count && differing < 10; seed++) {
        random_sequence(&kernel, seed);
        random_sequence(&simulated, seed);
        run_sequence(&kernel);
        options.seed = seed;
        CHECK(aco_sim_run(run_in_simulation, &simulated, 1, NULL, &options) == 0);
        differing += differ(&kernel, &simulated, seed);
    }
    CHECK_EQ(differing, 0);
    return check_result("sim_signal_order");
}
