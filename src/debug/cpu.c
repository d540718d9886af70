/* Where threads spend their time: each thread of the process gets a timer on its own clock of processor time, which
 * sends it SIGPROF. The handler stores the frames in a slot; the page's task empties the slots and counts.
 *
 * A handler only claims a slot, walks its stack and writes into the slot. The walk is async-signal-safe where libc
 * finds unwind tables without a lock (glibc 2.35); elsewhere a sample is the place alone. The handler stays when the
 * profile is over: a signal that comes late would end the process else. */
#define _GNU_SOURCE /* SIGEV_THREAD_ID, REG_RIP */
#define _FILE_OFFSET_BITS 64
#include "debug/cpu.h"
#include "system/system.h"

#include <dirent.h>
#include <errno.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    SLOTS = 1024,
    MOST_THREADS = 1024,
    DEFAULT_HERTZ = 100,
    MOST_HERTZ = 1000,
    DEFAULT_SECONDS = 30,
    MOST_SECONDS = 300,
    EMPTY_MS = 20,        /* between two looks into the slots */
    THREADS_EACH = 10,    /* looks: then new threads are looked for */
    LOOK_MS = 200         /* a thread has so long to answer */
};

typedef enum slot_state { IS_FREE, IS_CLAIMED, IS_FULL } slot_state_t;

typedef struct slot {
    unsigned state; /* atomic */
    int fired;      /* periods */
    unsigned profile; /* the number of the one whose timer has fired */
    long thread;
    aco__sample_t sample;
} slot_t;

/* sival_int of a timer: one of these, plus for a profile its number, as a signal may come when that is over. */
enum { FOR_LOOK = 0, FOR_PROFILE = 1, PROFILES = 1 << 30 };

static slot_t *slots;         /* SLOTS of them, from the first profile on; atomic */
static slot_t look;
static unsigned next_slot;    /* atomic, like these three */
static int takes_samples;     /* FOR_PROFILE and the number of the profile that is made; 0: none */
static int walks;             /* the walk is async-signal-safe */
static uint64_t lost;         /* samples without a slot */

/* ---- The handler ---- */

static void *interrupted_at(const void *context)
{
    const ucontext_t *of = context;
#if defined(__x86_64__)
    return (void *)of->uc_mcontext.gregs[REG_RIP];
#elif defined(__i386__)
    return (void *)of->uc_mcontext.gregs[REG_EIP];
#elif defined(__aarch64__)
    return (void *)of->uc_mcontext.pc;
#else
    (void)of;
    return NULL;
#endif
}

static slot_t *claim_slot(int what)
{
    slot_t *all = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
    for (int i = 0; what != FOR_LOOK && i < 8; i++) {
        slot_t *slot = &all[__atomic_fetch_add(&next_slot, 1, __ATOMIC_RELAXED) % SLOTS];
        unsigned is_free = IS_FREE;
        if (__atomic_compare_exchange_n(&slot->state, &is_free, IS_CLAIMED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return slot;
    }
    return what == FOR_LOOK && __atomic_load_n(&look.state, __ATOMIC_ACQUIRE) == IS_CLAIMED ? &look : NULL;
}

/* The library's functions that it calls find the running coroutine; none of them waits or allocates. */
static void on_profile_signal(int signal, siginfo_t *info, void *context)
{
    int error = errno, what = info->si_code == SI_TIMER ? info->si_value.sival_int : -1;
    int is_awaited = what == FOR_LOOK || (what > 0 && what == __atomic_load_n(&takes_samples, __ATOMIC_ACQUIRE));
    slot_t *slot = is_awaited ? claim_slot(what) : NULL;
    (void)signal;
    if (slot) {
        slot->thread = aco__system.gettid();
        slot->profile = (unsigned)what;
        slot->fired = 1 + (info->si_overrun > 0 ? info->si_overrun : 0);
        aco__sample_interrupted(&slot->sample,
                                walks ? __builtin_extract_return_addr(__builtin_return_address(0)) : NULL);
        if (!slot->sample.frame_count && (slot->sample.frames[0] = interrupted_at(context)) != NULL)
            slot->sample.frame_count = 1;
        __atomic_store_n(&slot->state, IS_FULL, __ATOMIC_RELEASE);
    } else if (is_awaited) {
        __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
    }
    errno = error;
}

static int walk_is_safe(void)
{
#ifdef __GLIBC__
    const char *version = gnu_get_libc_version();
    char *end;
    long major = strtol(version, &end, 10), minor = *end ? strtol(end + 1, NULL, 10) : 0;
    return (major > 2 || minor >= 35) && aco__sample_prepare() == 0;
#else
    return 0;
#endif
}

int aco__cpu_prepare(void)
{
    struct sigaction now, ours = {0};
    if (aco__system.sigaction(SIGPROF, NULL, &now) != 0)
        return -1;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_profile_signal)
        return 0;
    if ((now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)) {
        errno = EBUSY;
        return -1;
    }
    walks = walk_is_safe();
    ours.sa_sigaction = on_profile_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return aco__system.sigaction(SIGPROF, &ours, NULL);
}

/* ---- Timers ---- */

/* A timer that sends SIGPROF to the thread; -1: it is gone. libc's functions would need another library in old ones. */
static int new_timer(clockid_t clock, long thread, int what)
{
    struct sigevent event;
    int timer;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_int = what;
#ifdef sigev_notify_thread_id
    event.sigev_notify_thread_id = (pid_t)thread;
#else
    event._sigev_un._tid = (pid_t)thread;
#endif
    return syscall(SYS_timer_create, clock, &event, &timer) == 0 ? timer : -1;
}

static void set_timer(int timer, long first_ns, long each_ns)
{
    struct itimerspec times = {{0, each_ns}, {0, first_ns}};
    (void)syscall(SYS_timer_settime, timer, 0, &times, NULL);
}

static void delete_timer(int timer)
{
    (void)syscall(SYS_timer_delete, timer);
}

/* The clock of the processor time of a thread of this process. */
static clockid_t clock_of_thread(long thread)
{
    enum { OF_A_THREAD = 4, OF_ITS_RUNS = 2 };
    return (clockid_t)((~(unsigned)thread << 3) | OF_A_THREAD | OF_ITS_RUNS);
}

typedef struct timers {
    long threads[MOST_THREADS];
    int timers[MOST_THREADS];
    int n;
    long period; /* ns */
    int what; /* FOR_PROFILE and the profile's number */
} timers_t;

static void add_thread(timers_t *timers, long thread)
{
    for (int i = 0; i < timers->n; i++)
        if (timers->threads[i] == thread)
            return;
    if (timers->n == MOST_THREADS)
        return;
    timers->threads[timers->n] = thread;
    timers->timers[timers->n] = new_timer(clock_of_thread(thread), thread, timers->what);
    if (timers->timers[timers->n] < 0)
        return;
    set_timer(timers->timers[timers->n++], timers->period, timers->period);
}

static void add_threads(timers_t *timers)
{
    DIR *folder = aco__system.opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder && (entry = aco__system.readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            add_thread(timers, strtol(entry->d_name, NULL, 10));
    if (folder)
        aco__system.closedir(folder);
}

/* ---- A profile ---- */

static void empty_slots(aco__samples_t *samples, const timers_t *timers)
{
    for (int i = 0; i < SLOTS; i++) {
        slot_t *slot = &slots[i];
        aco__sample_key_t key = {0};
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != IS_FULL)
            continue;
        key.task = slot->sample.task;
        key.route = slot->sample.work;
        key.thread = slot->thread;
        key.frames = slot->sample.frames;
        key.frame_count = slot->sample.frame_count;
        if (slot->profile == (unsigned)timers->what) /* else a handler has ended late */
            (void)aco__samples_add(samples, &key, slot->fired, slot->fired * (int64_t)timers->period);
        __atomic_store_n(&slot->state, IS_FREE, __ATOMIC_RELEASE);
    }
}

ACO__SWITCHES static void take_profile(aco__samples_t *samples, timers_t *timers, int64_t until)
{
    static int profiles;
    profiles = (profiles + 1) % PROFILES;
    timers->what = FOR_PROFILE + profiles;
    __atomic_store_n(&takes_samples, timers->what, __ATOMIC_RELEASE);
    for (int i = 0; aco_now() < until; i++) {
        if (i % THREADS_EACH == 0)
            add_threads(timers);
        if (aco_sleep(EMPTY_MS * ACO_MILLISECOND) != 0)
            break; /* the server ends, or the client is gone */
        empty_slots(samples, timers);
    }
    __atomic_store_n(&takes_samples, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < timers->n; i++)
        delete_timer(timers->timers[i]);
    empty_slots(samples, timers);
}

ACO__SWITCHES static void reply_profile(aco_http_request_t *request, int seconds, int hertz)
{
    static const char cpu[] = "cpu: processor time, without the time in which other programs had the processor";
    aco__profile_kind_t kind = {"samples", "count", "cpu", "nanoseconds", 0, 0, NULL, cpu};
    aco__samples_t *samples = calloc(1, sizeof *samples);
    timers_t *timers = calloc(1, sizeof *timers);
    int64_t began = aco_now();
    if (!slots)
        __atomic_store_n(&slots, calloc(SLOTS, sizeof *slots), __ATOMIC_RELEASE);
    if (samples && timers && slots) {
        timers->period = kind.period = 1000000000 / hertz;
        take_profile(samples, timers, began + seconds * ACO_SECOND);
        kind.duration = aco_now() - began;
    }
    (void)aco_http_reply_header(request, "Content-Disposition", "attachment; filename=\"profile\"");
    aco__samples_reply(request, timers && slots ? samples : NULL, &kind);
    free(samples);
    free(timers);
}

ACO__SWITCHES void aco__cpu_refuse(aco_http_request_t *request)
{
    static const char busy[] = "the program uses SIGPROF itself\n";
    (void)aco_http_reply(request, 503, "text/plain", busy, sizeof busy - 1);
}

ACO__SWITCHES void aco__cpu_page(aco_http_request_t *request, void *unused)
{
    int seconds = aco__page_number(request, "seconds", DEFAULT_SECONDS, MOST_SECONDS);
    int hertz = aco__page_number(request, "hz", DEFAULT_HERTZ, MOST_HERTZ);
    (void)unused;
    seconds = seconds ? seconds : 1;
    if (!aco__profile_begin(request, seconds))
        return;
    if (aco__cpu_prepare() != 0)
        aco__cpu_refuse(request);
    else
        reply_profile(request, seconds, hertz ? hertz : 1);
    aco__profile_end();
}

/* ---- One thread ---- */

ACO__SWITCHES int aco__cpu_look(long thread, aco__sample_t *sample)
{
    int timer, found;
    int64_t until = aco_after(LOOK_MS * ACO_MILLISECOND);
    __atomic_store_n(&look.state, IS_CLAIMED, __ATOMIC_RELEASE);
    timer = new_timer(CLOCK_MONOTONIC, thread, FOR_LOOK);
    if (timer >= 0)
        set_timer(timer, 1000, 0);
    while (timer >= 0 && __atomic_load_n(&look.state, __ATOMIC_ACQUIRE) != IS_FULL && aco_now() < until)
        if (aco_sleep(ACO_MILLISECOND) != 0)
            break;
    if (timer >= 0)
        delete_timer(timer);
    found = __atomic_load_n(&look.state, __ATOMIC_ACQUIRE) == IS_FULL && look.thread == thread;
    if (found)
        *sample = look.sample;
    __atomic_store_n(&look.state, IS_FREE, __ATOMIC_RELEASE);
    return found ? 0 : -1;
}
