/* Which calls of a hooked task (aco/hook.h) let other tasks run. Acorn's own calls that do not wait never do, although
 * acorn_hook has hooks for what they call in libc: sched_yield() in a lock, write() to an eventfd, open() of a file in
 * /proc. Calls that wait lose no event to a hook. And libc's calls that could have waited let others run from time to
 * time, so that no client starves its thread.
 *
 * Others' turns are counted. Hooks count calls, and let others run at one of 64: so a test that wants this to happen at
 * a certain place tries all 64 PHASES. */
#define _GNU_SOURCE
#include "scheduler/task.h"
#include "threads/search.h"
#include <aco/mt.h>
#include "child.h"
#include "hook_tests.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

enum { PHASES = 64, SOON = 1000, STACK = 1 << 18 }; /* SOON: turns after which a wait is late */

static turns_t turns; /* of others */

static long turns_now(void)
{
    return __atomic_load_n(&turns.n, __ATOMIC_SEQ_CST);
}

/* So many calls of a hook that need not wait. After 0, 1, … 63 of them their number modulo 64 has had all values. */
static void make_calls(int n)
{
    int pair[2];
    char byte;
    blocking_pair(pair, SOCK_STREAM);
    for (; n > 0; n--) {
        CHECK_EQ(send(pair[1], "p", 1, MSG_DONTWAIT), 1);
        CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
    }
    close_two(pair);
}

/* ---- Posts to a thread that sleeps ---- */

typedef struct sleeper {
    pthread_barrier_t is_asleep, is_posted;
    aco_scheduler_t *scheduler;
    aco_t *task;
    int has_run, rounds;
    int pipe[2];
} sleeper_t;

static void *parks_again(void *arg)
{
    sleeper_t *sleeper = arg;
    while (sleeper->rounds > 0)
        (void)aco_park("a post");
    return NULL;
}

static void runs(void *arg)
{
    ((sleeper_t *)arg)->has_run++;
}

static void writes_to(void *fd)
{
    CHECK_EQ(write((int)(intptr_t)fd, "w", 1), 1);
}

/* Its scheduler is asleep whenever it is between the two barriers. */
static void *sleeps(void *arg)
{
    sleeper_t *sleeper = arg;
    int64_t next;
    CHECK_EQ(aco_on_wake(writes_to, (void *)(intptr_t)sleeper->pipe[1]), 0);
    sleeper->scheduler = aco_scheduler_open();
    sleeper->task = aco_spawn(parks_again, sleeper, NULL);
    CHECK(sleeper->scheduler && sleeper->task && aco_io_poll_fd() >= 0);
    while (aco_run_ready(&next) > 0) {
        pthread_barrier_wait(&sleeper->is_asleep);
        pthread_barrier_wait(&sleeper->is_posted);
    }
    CHECK_EQ(aco_join(sleeper->task, NULL), 0);
    CHECK_EQ(aco_scheduler_close(), 0);
    return NULL;
}

/* aco_post() and aco_unpark() for another thread write to its eventfd, and call the program's function. */
static void *test_posts(void *unused)
{
    enum { ROUNDS = 200 };
    sleeper_t sleeper = {.rounds = ROUNDS};
    pthread_t thread;
    begin();
    CHECK_EQ(pipe(sleeper.pipe), 0);
    CHECK_EQ(pthread_barrier_init(&sleeper.is_asleep, NULL, 2), 0);
    CHECK_EQ(pthread_barrier_init(&sleeper.is_posted, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, sleeps, &sleeper), 0);
    start_counting(&turns);
    while (sleeper.rounds > 0) {
        pthread_barrier_wait(&sleeper.is_asleep);
        sleeper.rounds--;
        CHECK_EQ(sleeper.rounds % 2 ? aco_post(sleeper.scheduler, runs, &sleeper) : aco_unpark(sleeper.task), 0);
        pthread_barrier_wait(&sleeper.is_posted);
    }
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sleeper.has_run, ROUNDS / 2);
    CHECK_EQ(pthread_barrier_destroy(&sleeper.is_asleep), 0);
    CHECK_EQ(pthread_barrier_destroy(&sleeper.is_posted), 0);
    close_two(sleeper.pipe);
    return unused;
}

/* ---- Handlers of signals ---- */

static int pipe_of_handler[2], has_handled;
static sigjmp_buf before_handler;

static void use_pipe(void)
{
    char byte;
    for (int i = 0; i < PHASES; i++) {
        CHECK_EQ(write(pipe_of_handler[1], "h", 1), 1);
        CHECK_EQ(read(pipe_of_handler[0], &byte, 1), 1);
    }
}

static void handles(int number)
{
    (void)number;
    use_pipe();
    has_handled++;
}

static void handles_two(int number)
{
    CHECK_EQ(raise(SIGFPE), 0);
    handles(number);
}

static void handles_with_jump(int number)
{
    jmp_buf *inside = __builtin_alloca(sizeof *inside); /* else ASan has it on another stack */
    if (setjmp(*inside) == 0)
        longjmp(*inside, 1);
    handles(number);
}

static void jumps(int number)
{
    (void)number;
    siglongjmp(before_handler, 1);
}

static void jumps_plainly(int number)
{
    (void)number;
    longjmp(before_handler, 1);
}

extern void __longjmp_chk(struct __jmp_buf_tag *place, int value) __attribute__((noreturn)); /* of _FORTIFY_SOURCE */

static void jumps_checked(int number)
{
    (void)number;
    __longjmp_chk(before_handler, 1);
}

static void jumps_from_nested(int number)
{
    (void)number;
    CHECK_EQ(raise(SIGFPE), 0);
    CHECK(!"a jump");
}

static ucontext_t context_before;

static void sets_context(int number)
{
    (void)number;
    CHECK_EQ(setcontext(&context_before), 0);
}

static void handle(int number, void (*handler)(int number), int flags)
{
    struct sigaction action = {0};
    action.sa_handler = handler;
    action.sa_flags = flags;
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

/* Calls it below a frame that is left as it was: a handler's frames may have been there. */
static __attribute__((noinline)) void deep(void (*call)(int arg), int arg)
{
    volatile char *frame = __builtin_alloca(1 << 14); /* which ASan does not put elsewhere */
    frame[0] = 0;
    call(arg);
    frame[0] = 1;
}

static void calls_switch_again(void)
{
    __atomic_store_n(&turns.n, 0, __ATOMIC_SEQ_CST);
    deep(make_calls, PHASES);
    CHECK(turns_now() > 0);
}

static void runs_alone(int number, void (*handler)(int number), int flags)
{
    int before = has_handled;
    handle(number, handler, flags);
    __atomic_store_n(&turns.n, 0, __ATOMIC_SEQ_CST);
    CHECK_EQ(raise(number), 0);
    CHECK(has_handled > before && turns_now() == 0);
    calls_switch_again();
    handle(number, SIG_DFL, 0);
}

static void leaves_by_jump(void (*handler)(int number), int flags, int saves_mask)
{
    sigset_t mask;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    handle(SIGUSR2, handler, flags);
    if (sigsetjmp(before_handler, saves_mask) == 0) {
        (void)raise(SIGUSR2);
        CHECK(!"a jump");
    }
    calls_switch_again();
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
    handle(SIGUSR2, SIG_DFL, 0);
}

static void raises(int number)
{
    (void)raise(number);
    CHECK(!"a context");
}

static void *calls_switch(void *unused)
{
    begin();
    __atomic_store_n(&turns.n, 0, __ATOMIC_SEQ_CST);
    make_calls(PHASES);
    CHECK(turns_now() > 0);
    return unused;
}

static void does_nothing(int number)
{
    (void)number;
}

static void *is_interrupted(void *unused)
{
    begin();
    handle(SIGUSR1, does_nothing, 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    calls_switch_again();
    handle(SIGUSR1, SIG_DFL, 0);
    return unused;
}

/* Ends a handler in a way that no hook notices. */
static void leave_by_context(void)
{
    volatile int is_left = 0;
    CHECK_EQ(getcontext(&context_before), 0);
    if (!is_left) {
        is_left = 1;
        deep(raises, SIGUSR2);
    }
}

static void join_with(char *stack, aco_function_t fn, void *arg)
{
    aco_options_t options = {.stack_memory = stack, .stack_size = STACK};
    aco_t *task = aco_spawn(fn, arg, &options);
    CHECK(task != NULL);
    join(task);
}

static void join_on(char *stack, aco_function_t fn)
{
    join_with(stack, fn, stack);
}

/* Calls of shallower frames notice it, and those of tasks on other stacks, also of one below this one's. */
static void *leaves_unnoticed(void *stack)
{
    begin();
    handle(SIGUSR2, sets_context, 0);
    leave_by_context();
    (void)calls_switch(NULL);
    leave_by_context();
    join_on((char *)stack - STACK, calls_switch);
    leave_by_context();
    join_on((char *)stack - STACK, is_interrupted);
    handle(SIGUSR2, SIG_DFL, 0);
    return NULL;
}

/* A handler on another stack, above or below this one's, is left in the same way. */
static void *leaves_another_stack(void *other)
{
    const stack_t alternate = {.ss_sp = other, .ss_size = STACK};
    stack_t before;
    begin();
    CHECK_EQ(sigaltstack(&alternate, &before), 0);
    handle(SIGUSR2, sets_context, SA_ONSTACK);
    leave_by_context();
    (void)calls_switch(NULL);
    leave_by_context();
    calls_switch_again();
    handle(SIGUSR2, SIG_DFL, 0);
    CHECK_EQ(sigaltstack(&before, NULL), 0);
    return NULL;
}

static const aco_t *has_ended;

static void exits(int number)
{
    (void)number;
    aco_exit();
}

static void *exits_in_handler(void *unused)
{
    begin();
    has_ended = aco_current_task();
    handle(SIGUSR2, exits, SA_NODEFER);
    (void)raise(SIGUSR2);
    CHECK(!"an exit");
    return unused;
}

static void *calls_switch_deeper(void *unused)
{
    CHECK(aco_current_task() == has_ended); /* at the same address */
    begin();
    calls_switch_again();
    return unused;
}

static void *test_handlers_left(void *unused)
{
    static _Alignas(65536) char stacks[2 * STACK];
    start_counting(&turns);
    join_on(stacks + STACK, leaves_unnoticed);
    join_with(stacks, leaves_another_stack, stacks + STACK);
    join_with(stacks + STACK, leaves_another_stack, stacks);
    if (!UNDER_TSAN) {
        join_on(stacks, exits_in_handler);
        join_on(stacks, calls_switch_deeper);
        handle(SIGUSR2, SIG_DFL, 0);
    }
    stop_counting(&turns);
    return unused;
}

static void nests(int flags, int saves_mask)
{
    handle(SIGFPE, handles, flags ^ SA_ONSTACK);
    runs_alone(SIGUSR2, handles_two, flags);
    handle(SIGFPE, jumps, flags ^ SA_ONSTACK);
    leaves_by_jump(jumps_from_nested, flags, saves_mask);
    handle(SIGFPE, SIG_DFL, 0);
}

/* What a handler calls lets no others run, since it may have interrupted anything. */
static void *test_handlers(void *unused)
{
    static const int flags[] = {0, SA_NODEFER, SA_ONSTACK, SA_ONSTACK | SA_NODEFER};
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, before;
    begin();
    CHECK_EQ(pipe(pipe_of_handler), 0);
    CHECK_EQ(sigaltstack(&other, &before), 0);
    start_counting(&turns);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        runs_alone(SIGUSR2, handles, flags[i]);
        runs_alone(SIGSEGV, handles, flags[i]); /* a fault's */
        runs_alone(SIGRTMIN, handles_with_jump, flags[i]);
        for (int saves_mask = 0; saves_mask < 2; saves_mask++) {
            leaves_by_jump(jumps, flags[i], saves_mask);
            leaves_by_jump(jumps_plainly, flags[i], saves_mask);
            leaves_by_jump(jumps_checked, flags[i], saves_mask);
            if (!UNDER_TSAN) /* it puts nested handlers off, and those of children */
                nests(flags[i], saves_mask);
        }
    }
    stop_counting(&turns);
    CHECK_EQ(sigaltstack(&before, NULL), 0);
    close_two(pipe_of_handler);
    return unused;
}

static struct sigaction before_last;

static void calls_last(int number, siginfo_t *info, void *context)
{
    before_last.sa_sigaction(number, info, context);
}

/* acorn's handler of faults calls the program's, and the program's next one calls acorn's. */
static void handle_faults_in_turn(void)
{
    struct sigaction last = {0};
    handle(SIGBUS, handles, SA_ONSTACK);
    CHECK_EQ(aco_explain_overflow(), 0);
    last.sa_sigaction = calls_last;
    last.sa_flags = SA_SIGINFO | SA_ONSTACK;
    CHECK_EQ(sigaction(SIGBUS, &last, &before_last), 0);
    CHECK_EQ(raise(SIGBUS), 0);
    CHECK_EQ(has_handled, 1);
    CHECK_EQ(sigaction(SIGBUS, &before_last, NULL), 0); /* as if the next one had never been there */
    CHECK_EQ(raise(SIGBUS), 0);
    CHECK_EQ(has_handled, 2);
}

static void *test_handlers_of_faults(void *unused)
{
    CHECK_EQ(pipe(pipe_of_handler), 0);
    has_handled = 0;
    PASSES(handle_faults_in_turn);
    close_two(pipe_of_handler);
    return unused;
}

static pid_t own_process;

static void ends_child(int number)
{
    (void)number;
    if (getpid() != own_process)
        _exit(0);
}

static pid_t forked;

static void forks(int number)
{
    (void)number;
    forked = fork();
    use_pipe();
}

static void await_child(pid_t child)
{
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

/* Nor do a child's handlers leave anything behind. */
static void *test_handlers_of_children(void *unused)
{
    pid_t child;
    if (UNDER_TSAN)
        return unused;
    begin();
    CHECK_EQ(pipe(pipe_of_handler), 0);
    start_counting(&turns);
    own_process = getpid();
    handle(SIGUSR2, ends_child, 0);
    child = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork): its memory is what is tested
    if (child == 0) {
        (void)kill(getpid(), SIGUSR2);
        _exit(1);
    }
    calls_switch_again();
    await_child(child);
    handle(SIGUSR2, forks, 0);
    __atomic_store_n(&turns.n, 0, __ATOMIC_SEQ_CST);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(turns_now(), 0);
    if (forked == 0) {
        make_calls(PHASES); /* as in any child of fork() */
        _exit(turns_now() != 0);
    }
    calls_switch_again();
    await_child(forked);
    handle(SIGUSR2, SIG_DFL, 0);
    stop_counting(&turns);
    close_two(pipe_of_handler);
    return unused;
}

/* ---- Cancelling of what runs on several threads ---- */

static void *has_poller(void *unused)
{
    CHECK(aco_io_poll_fd() >= 0);
    return unused;
}

static void await_sleep(const aco__worker_t *worker)
{
    while (!__atomic_load_n(&worker->scheduler->is_asleep, __ATOMIC_SEQ_CST))
        ;
}

/* The end of a scope is passed on from scope to scope and to the other threads: a task that ran in between could leave
 * a scope that is next. */
static void *cancels_groups(void *unused)
{
    const aco__worker_t *other = &aco__threads_worker(aco_threads_current(), 1)->base;
    aco_mt_group_t group;
    begin();
    CHECK_EQ(aco_mt_group_begin(&group, ACO_KEEP_GOING), 0);
    CHECK_EQ(aco_submit(&group, has_poller, NULL, &(aco_submit_options_t){.where = ACO_SUBMIT_TO, .thread = 1}), 0);
    CHECK_EQ(aco_mt_group_end(&group), 0);
    start_counting(&turns);
    for (int i = 0; i < 4 * PHASES; i++) {
        CHECK_EQ(aco_mt_group_begin(&group, ACO_KEEP_GOING), 0);
        await_sleep(other);
        CHECK_EQ(aco_scope_cancel(&group.scope), 0);
        CHECK_EQ(aco_mt_group_end(&group), 0);
    }
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    return unused;
}

static void test_cancelling(void)
{
    aco_threads_options_t options = {.flags = ACO_THREADS_FIRST_ONLY};
    alarm(150);
    CHECK_EQ(aco_threads_run(2, cancels_groups, NULL, &options), 0);
}

/* ---- Locks of objects between threads ---- */

typedef struct holder {
    uint32_t *lock;
    clockid_t spinner; /* the clock of the time that the one who wants the lock has used */
    int has_lock;      /* atomic */
} holder_t;

static int64_t time_of(clockid_t clock)
{
    struct timespec time = {0, 0};
    CHECK_EQ(clock_gettime(clock, &time), 0);
    return time.tv_sec * ACO_SECOND + time.tv_nsec;
}

/* Has the lock as if its thread were not running: until the other thread has looked at it many times, or lets its other
 * tasks run. */
static void *holds_lock(void *arg)
{
    holder_t *holder = arg;
    int64_t began;
    __atomic_store_n(holder->lock, 1, __ATOMIC_SEQ_CST);
    began = time_of(holder->spinner);
    __atomic_store_n(&holder->has_lock, 1, __ATOMIC_SEQ_CST);
    while (!turns_now() && time_of(holder->spinner) < began + 20 * ACO_MILLISECOND)
        ;
    __atomic_store_n(holder->lock, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* A hooked task that waits for the lock of one object, with the lock of another one: if others ran, one of them could
 * want that lock, and spin for ever. A channel's first word is its lock. */
static void *test_locks_of_shared(void *unused)
{
    aco_mt_channel_t *channels[2] = {aco_mt_channel_new(4, sizeof(int)),
                                         aco_mt_channel_new(4, sizeof(int))};
    aco_mt_select_case_t cases[2] = {{0}, {0}};
    int element = 0, last = (uintptr_t)channels[1] > (uintptr_t)channels[0];
    holder_t holder = {(uint32_t *)(void *)channels[last], CLOCK_MONOTONIC, 0};
    pthread_t thread;
    begin();
    for (int i = 0; i < 2; i++) {
        cases[i].channel = channels[i];
        cases[i].operation = ACO_SELECT_RECEIVE;
        cases[i].element = &element;
    }
    CHECK_EQ(pthread_getcpuclockid(pthread_self(), &holder.spinner), 0);
    start_counting(&turns);
    CHECK_EQ(pthread_create(&thread, NULL, holds_lock, &holder), 0);
    while (!__atomic_load_n(&holder.has_lock, __ATOMIC_SEQ_CST))
        ;
    FAILS_WITH(aco_mt_try_select(cases, 2), EAGAIN);
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    aco_mt_channel_destroy(channels[0]);
    aco_mt_channel_destroy(channels[1]);
    return unused;
}

/* ---- What acorn itself reads and writes ---- */

static void *returns(void *arg)
{
    return arg;
}

/* A failing call finds out which limit was reached. */
static void *test_failures(void *unused)
{
    aco_options_t options = {.stack_size = SIZE_MAX / 4};
    aco_t *tasks[4]; /* a 32-bit process may have room for one or two */
    int n = 0;
    begin();
    start_counting(&turns);
    errno = 0;
    while (n < 4 && (tasks[n] = aco_spawn(returns, NULL, &options)) != NULL)
        n++;
    CHECK(n < 4);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    while (n > 0)
        join(tasks[--n]);
    return unused;
}

/* A report walks the list of all tasks. */
static void *test_reports(void *unused)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), lines = 0;
    begin();
    start_counting(&turns);
    while (lines++ < 2 * PHASES)
        CHECK_EQ(aco_tasks_dump(fd), 0);
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    CHECK_EQ(close(fd), 0);
    return unused;
}

/* The first stack that is made needs a guard: how many are possible is read with a lock. In a child of fork(), where no
 * stack was made before, also not for these tasks. */
static void *spawns_first(void *unused)
{
    aco_t *task;
    begin();
    __atomic_store_n(&turns.n, 0, __ATOMIC_SEQ_CST);
    task = aco_spawn(returns, NULL, NULL);
    CHECK(task != NULL);
    CHECK_EQ(turns_now(), 0);
    turns.is_over = 1;
    join(task);
    return unused;
}

static void makes_first_stack(void)
{
    static _Alignas(65536) char memory[2][STACK];
    static const aco_function_t functions[2] = {counts_own_turns, spawns_first};
    for (int i = 0; i < 2; i++) {
        aco_options_t options = {.stack_memory = memory[i], .stack_size = sizeof memory[i]};
        CHECK(aco_spawn(functions[i], &turns, &options) != NULL);
    }
    CHECK_EQ(aco_run(), 0);
}

/* A trace is written while coroutines begin and end. Run with ACO_TRACE. */
static void *test_trace(void *unused)
{
    begin();
    start_counting(&turns);
    for (int i = 0; i < 3000; i++)
        aco_destroy(aco_new(returns, NULL, NULL));
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    return unused;
}

/* ---- Calls of acorn_io that wait ---- */

/* Another task that acts once for each wait that is counted in `due`. */
typedef struct partner {
    int pair[2];
    void (*act)(const struct partner *partner);
    int due, over, is_late; /* over: the last wait that is */
    aco_t *waiter;     /* the one who waits; NULL: is not parked */
    aco_scope_t scope; /* the waiter's */
} partner_t;

/* Longer than the scheduler puts off a look for events while tasks run. */
static void let_time_pass(void)
{
    int64_t end = aco_after(ACO_MILLISECOND);
    while (aco_now() < end)
        ;
}

/* Acts, and lets the wait end. One that does not is cancelled. */
static void act_for(partner_t *partner, int due)
{
    partner->act(partner);
    let_time_pass();
    for (int i = 0; partner->over != due && i < SOON; i++)
        aco_task_yield();
    if (partner->over == due)
        return;
    partner->is_late = 1;
    CHECK_EQ(aco_scope_cancel(&partner->scope), 0);
    while (partner->over != due)
        aco_task_yield();
}

enum { IS_OVER = -1 };

static void *acts(void *arg)
{
    partner_t *partner = arg;
    for (int done = 0; partner->due != IS_OVER; aco_task_yield()) {
        if (partner->waiter)
            CHECK_EQ(aco_unpark(partner->waiter), 0);
        partner->waiter = NULL;
        if (partner->due != done) {
            done = partner->due;
            act_for(partner, done);
        }
    }
    return NULL;
}

/* The next turns are the partner's, then the thread looks for events, and then they are the caller's. */
static void arrange_turns(partner_t *partner)
{
    partner->waiter = aco_current_task();
    CHECK_EQ(aco_park("its partner"), 0);
}

static void drains(const partner_t *partner)
{
    static char bytes[1 << 16];
    while (recv(partner->pair[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

static void sends(const partner_t *partner)
{
    CHECK_EQ(send(partner->pair[1], "b", 1, MSG_DONTWAIT), 1);
}

static void closes(const partner_t *partner)
{
    CHECK_EQ(aco_io_close(partner->pair[0]), 0);
}

static void fill(int fd)
{
    while (send(fd, large, 4096, MSG_DONTWAIT) > 0)
        ;
    CHECK_EQ(errno, EAGAIN);
}

static void *waits_for_nothing(void *fd)
{
    char byte;
    CHECK_EQ(aco_io_read((int)(intptr_t)fd, &byte, 1), 0);
    return NULL;
}

/* Runs wait(partner, phase) in all phases. A third task has the thread look for events all the time. */
static void in_all_phases(partner_t *partner, void (*wait)(partner_t *partner))
{
    int idle[2];
    aco_t *waiter, *other;
    begin();
    make_pair(idle, SOCK_STREAM);
    waiter = beside(waits_for_nothing, (void *)(intptr_t)idle[0]);
    other = beside(acts, partner);
    CHECK_EQ(aco_scope_begin(&partner->scope, ACO_FOREVER), 0);
    for (int phase = 0; phase < PHASES && !partner->is_late; phase++) {
        make_calls(phase);
        wait(partner);
        partner->over = partner->due;
    }
    CHECK_EQ(aco_scope_end(&partner->scope), 0);
    CHECK(!partner->is_late);
    partner->due = IS_OVER;
    join(other);
    CHECK_EQ(aco_io_close(idle[1]), 0);
    join(waiter);
    CHECK_EQ(aco_io_close(idle[0]), 0);
}

static void waits_to_write(partner_t *partner)
{
    arrange_turns(partner);
    fill(partner->pair[0]);
    partner->due++;
    CHECK_EQ(aco_io_write(partner->pair[0], "w", 1), 1);
}

/* Between EAGAIN and the wait nobody runs, who would take the edge of the event. */
static void *test_edge_of_writes(void *unused)
{
    partner_t partner = {.act = drains};
    make_pair(partner.pair, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(partner.pair[0]), 0);
    in_all_phases(&partner, waits_to_write);
    close_both(partner.pair);
    return unused;
}

static void waits_to_read(partner_t *partner)
{
    char bytes[8];
    CHECK_EQ(send(partner->pair[1], "a", 1, MSG_DONTWAIT), 1);
    CHECK_EQ(aco_io_wait_readable(partner->pair[0]), 0);
    arrange_turns(partner);
    partner->due++;
    for (ssize_t all = 0, n = 1; all < 2 && n > 0; all += n) {
        n = aco_io_read(partner->pair[0], bytes, sizeof bytes);
        CHECK(n > 0);
    }
}

/* Nor between a short read and the note that the socket is empty. */
static void *test_drained(void *unused)
{
    partner_t partner = {.act = sends};
    make_tcp(partner.pair);
    in_all_phases(&partner, waits_to_read);
    close_both(partner.pair);
    return unused;
}

static void waits_for_close(partner_t *partner)
{
    make_pair(partner->pair, SOCK_STREAM);
    CHECK_EQ(aco_io_adopt(partner->pair[0]), 0);
    arrange_turns(partner);
    fill(partner->pair[0]);
    partner->due++;
    FAILS_WITH(aco_io_write(partner->pair[0], "w", 1), ECANCELED);
    CHECK_EQ(aco_io_close(partner->pair[1]), 0);
}

/* Nor somebody who closes the descriptor. */
static void *test_close(void *unused)
{
    partner_t partner = {.act = closes};
    in_all_phases(&partner, waits_for_close);
    return unused;
}

/* ---- Fairness ---- */

/* What the calls below use: they never have to wait. */
static sem_t semaphore; /* 0 */

typedef struct ready {
    int pair[2], pipe[2], listener, epoll, file;
    struct sockaddr_un address;
    socklen_t length;
} ready_t;

static void send_one(const ready_t *r)
{
    CHECK_EQ(send(r->pair[1], "b", 1, MSG_DONTWAIT), 1);
}

static void take_one(const ready_t *r)
{
    char byte;
    CHECK_EQ(recv(r->pair[1], &byte, 1, MSG_DONTWAIT), 1);
}

static void reads(const ready_t *r)
{
    char byte;
    send_one(r);
    CHECK_EQ(read(r->pair[0], &byte, 1), 1);
}

static void receives(const ready_t *r)
{
    char byte;
    send_one(r);
    CHECK_EQ(recv(r->pair[0], &byte, 1, 0), 1);
}

static void receives_several(const ready_t *r)
{
    char byte;
    struct iovec part = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    send_one(r);
    CHECK_EQ(recvmmsg(r->pair[0], &message, 1, 0, NULL), 1);
}

static void writes(const ready_t *r)
{
    CHECK_EQ(write(r->pair[0], "b", 1), 1);
    take_one(r);
}

static void sends_bytes(const ready_t *r)
{
    CHECK_EQ(send(r->pair[0], "b", 1, 0), 1);
    take_one(r);
}

static void sends_several(const ready_t *r)
{
    struct iovec part = {large, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    CHECK_EQ(sendmmsg(r->pair[0], &message, 1, 0), 1);
    take_one(r);
}

static void sends_file(const ready_t *r)
{
    off_t offset = 0;
    CHECK_EQ(sendfile(r->pair[0], r->file, &offset, 1), 1);
    take_one(r);
}

static void uses_pipe(const ready_t *r)
{
    char byte;
    CHECK_EQ(write(r->pipe[1], "b", 1), 1);
    CHECK_EQ(read(r->pipe[0], &byte, 1), 1);
}

static void polls(const ready_t *r)
{
    struct pollfd p = {r->pair[0], POLLOUT, 0};
    CHECK_EQ(poll(&p, 1, -1), 1);
}

static void selects(const ready_t *r)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(r->pair[0], &set);
    CHECK_EQ(select(r->pair[0] + 1, NULL, &set, NULL, NULL), 1);
}

static void waits_for_epoll(const ready_t *r)
{
    struct epoll_event event;
    CHECK_EQ(epoll_wait(r->epoll, &event, 1, -1), 1);
}

static void accepts(const ready_t *r)
{
    int fds[2] = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), -1};
    CHECK_EQ(connect(fds[0], (const struct sockaddr *)&r->address, r->length), 0);
    fds[1] = accept(r->listener, NULL, NULL);
    CHECK(fds[1] >= 0);
    close_two(fds);
}

static void connects(const ready_t *r)
{
    int fds[2] = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    CHECK_EQ(connect(fds[0], (const struct sockaddr *)&r->address, r->length), 0);
    fds[1] = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(fds[1] >= 0);
    close_two(fds);
}

static void locks_file(const ready_t *r)
{
    CHECK_EQ(flock(r->file, LOCK_SH), 0);
}

static void locks_range(const ready_t *r)
{
    struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    CHECK_EQ(fcntl(r->file, F_SETLKW, &range), 0);
}

static void takes_semaphore(const ready_t *r)
{
    (void)r;
    CHECK_EQ(sem_post(&semaphore), 0);
    CHECK_EQ(sem_wait(&semaphore), 0);
}

static void open_ready(ready_t *r)
{
    struct epoll_event event = {EPOLLOUT, {.fd = 0}};
    memset(r, 0, sizeof *r);
    blocking_pair(r->pair, SOCK_STREAM);
    CHECK_EQ(pipe2(r->pipe, O_CLOEXEC), 0);
    r->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK_EQ(epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->pair[0], &event), 0);
    r->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    r->address.sun_family = AF_UNIX;
    r->length = sizeof r->address;
    CHECK_EQ(bind(r->listener, (struct sockaddr *)&r->address, sizeof(sa_family_t)), 0);
    CHECK_EQ(getsockname(r->listener, (struct sockaddr *)&r->address, &r->length), 0);
    CHECK_EQ(listen(r->listener, 10), 0);
    CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
}

static void close_ready(const ready_t *r)
{
    close_two(r->pair);
    close_two(r->pipe);
    CHECK_EQ(close(r->listener), 0);
    CHECK_EQ(close(r->epoll), 0);
    CHECK_EQ(close(r->file), 0);
}

/* Each call alone gives others a turn in 128 calls. */
static void *test_fairness(void *unused)
{
    static const struct {
        const char *name;
        void (*call)(const ready_t *r);
    } calls[] = {{"read", reads},         {"recv", receives},     {"recvmmsg", receives_several},
                 {"write", writes},       {"send", sends_bytes},  {"sendmmsg", sends_several},
                 {"sendfile", sends_file}, {"a pipe", uses_pipe},  {"poll", polls},
                 {"select", selects},     {"epoll", waits_for_epoll}, {"accept", accepts},
                 {"connect", connects},    {"flock", locks_file},   {"fcntl", locks_range},
                 {"sem_wait", takes_semaphore}};
    ready_t ready;
    begin();
    open_ready(&ready);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        start_counting(&turns);
        for (int call = 0; call < 1280; call++)
            calls[i].call(&ready);
        if (turns_now() < 10)
            fprintf(stderr, "%s gives others too few turns:\n", calls[i].name);
        CHECK(turns_now() >= 10);
        stop_counting(&turns);
    }
    close_ready(&ready);
    return unused;
}

/* Calls that must not wait give nobody a turn. */
static void *test_dontwait(void *unused)
{
    int pair[2], epoll;
    struct timespec no_time = {0, 0};
    struct epoll_event event;
    struct pollfd p;
    char byte;
    begin();
    blocking_pair(pair, SOCK_STREAM);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    p = (struct pollfd){pair[0], POLLIN, 0};
    start_counting(&turns);
    for (int i = 0; i < 4 * PHASES; i++) {
        CHECK_EQ(poll(&p, 1, 0), 0);
        CHECK_EQ(ppoll(&p, 1, &no_time, NULL), 0);
        CHECK_EQ(pselect(0, NULL, NULL, NULL, &no_time, NULL), 0);
        CHECK_EQ(epoll_pwait(epoll, &event, 1, 0, NULL), 0);
#if __GLIBC_PREREQ(2, 35)
        CHECK_EQ(epoll_pwait2(epoll, &event, 1, &no_time, NULL), 0);
#endif
        FAILS_WITH(recv(pair[0], &byte, 1, MSG_DONTWAIT), EAGAIN);
        CHECK_EQ(send(pair[1], "b", 1, MSG_DONTWAIT), 1);
        CHECK_EQ(recv(pair[0], &byte, 1, MSG_DONTWAIT), 1);
    }
    CHECK_EQ(turns_now(), 0);
    stop_counting(&turns);
    CHECK_EQ(close(epoll), 0);
    close_two(pair);
    return unused;
}

static void *makes_nonblocking(void *fd)
{
    CHECK_EQ(fcntl((int)(intptr_t)fd, F_SETFL, O_NONBLOCK), 0);
    return NULL;
}

/* What another task makes of a descriptor in a call's turn stays. */
static void *test_flags(void *unused)
{
    ready_t ready;
    begin();
    open_ready(&ready);
    for (int phase = 0; phase < PHASES; phase++) {
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;
        aco_t *other;
        CHECK_EQ(syscall(SYS_connect, client, &ready.address, ready.length), 0);
        make_calls(phase);
        other = beside(makes_nonblocking, (void *)(intptr_t)ready.listener);
        connection = accept(ready.listener, NULL, NULL);
        join(other);
        CHECK(fcntl(ready.listener, F_GETFL) & O_NONBLOCK);
        CHECK_EQ(fcntl(ready.listener, F_SETFL, 0), 0);
        close_two((int[]){client, connection});
    }
    close_ready(&ready);
    return unused;
}

int main(int argc, char **argv)
{
    static const aco_function_t watched[] = {test_edge_of_writes, test_drained, test_close, test_fairness, NULL};
    /* test_handlers_of_children is the last: gcov counts nothing after its vfork() */
    static const aco_function_t others[] = {
        test_posts,   test_handlers, test_handlers_left, test_failures,           test_locks_of_shared,
        test_reports, test_dontwait, test_flags,         test_handlers_of_faults, test_handlers_of_children,
        NULL};
    static const aco_function_t traced[] = {test_trace, NULL};
    if (argc > 1 && strcmp(argv[1], "traced") == 0)
        return run_hook_tests(1, argv, "hook_switches", traced, traced + 1, NULL);
    PASSES(makes_first_stack);
    test_cancelling();
    return run_hook_tests(argc, argv, "hook_switches", watched, others, NULL);
}
