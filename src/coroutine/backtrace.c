/* Backtraces of coroutines. The walk of a coroutine that does not run starts on the stack of another one, the walker:
 * unwinders continue from its first frame in its unwind parent (coroutine/entry/assembly.h), and while it walks, that
 * is the context of the coroutine in question. */
#include "base/upcalls.h"
#include "coroutine/backtrace_internal.h"
#include "coroutine/create.h"
#include "coroutine/entry.h"
#include "coroutine/query.h"
#include "coroutine/unwinder.h"

#include "aco/backtrace.h"
#include "aco/detail/inspect.h"

#include <stdio.h>
#include <string.h>

static const char backtrace_call[] = "aco_backtrace";

static void copy_text(char *to, size_t room, const char *text)
{
    size_t n = 0;
    while (n + 1 < room && text[n]) {
        to[n] = text[n];
        n++;
    }
    to[n] = 0;
}

/* In a handler: begins the sample with the task's name and work. Returns the coroutine that runs, NULL for none. */
static const aco_t *name_interrupted(aco__sample_t *sample)
{
    const aco__thread_t *self = aco__self();
    const aco_t *running = self->running, *task = running ? self->task : NULL;
    sample->frame_count = 0;
    sample->task[0] = sample->work[0] = 0;
    if (running && !running->share_stack) /* aco_run() has a turn among the tasks */
        return NULL;
    if (task && task->share_stack && aco__is_task(task)) {
        copy_text(sample->task, sizeof sample->task, aco_name(task));
        copy_text(sample->work, sizeof sample->work, aco__work(task));
    }
    return running;
}

#ifdef ACO__UNWINDS_TO_RESUMER
enum { MOST_FRAMES = 1 << 16, PRINTED_FRAMES = 256, INTERRUPTED_FRAMES = 32, FRAME_LINE = 512 };

/* In memory of its own: the caller's array may be on a share stack, from which the walk evicts the caller. */
typedef struct frames {
    aco_t *co;
    const aco__unwinder_t *unwinder;
    const void *from; /* the frames begin at this return address, */
    int after;        /* or after it */
    int n, room;
    const char **sps; /* of each, its stack pointer; NULL: not wanted */
    void *at[];
} frames_t;

ACO__FOREIGN_ENTRY static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
    frames_t *frames = arg;
    const char *pc = (const char *)(uintptr_t)frames->unwinder->GetIP(context);
    if (frames->from && pc != frames->from)
        return _URC_NO_REASON;
    if (frames->from) {
        frames->from = NULL;
        if (frames->after)
            return _URC_NO_REASON;
    }
    if (!pc || pc == aco__returned_without_parent)
        return _URC_END_OF_STACK;
    if (pc == aco__returned) { /* the frame before it is the library's first function, except after aco_create() */
        frames->n -= frames->n && frames->co && aco__has(frames->co, ACO__FROM_NEW);
        return _URC_END_OF_STACK;
    }
    if (frames->n == frames->room)
        return _URC_END_OF_STACK;
    if (frames->sps)
        frames->sps[frames->n] = aco__traced_frame_sp(context);
    frames->at[frames->n++] = (void *)(uintptr_t)pc;
    return _URC_NO_REASON;
}

/* While a walk goes over them, saved frames of a task lie in their place on its share stack, and what is there lies in
 * the save area. Nothing runs on the stack meanwhile. */
ACO__NO_SANITIZE static void exchange_frames(const aco_t *task, const aco__context_t *context)
{
    volatile char *on_stack = context->sp, *saved = task->save_stack.ptr;
    for (size_t i = 0; i < task->save_stack.valid_sz; i++) {
        char c = on_stack[i];
        on_stack[i] = saved[i];
        saved[i] = c;
    }
}

/* Where a task of the thread that does not run goes on, or the coroutine inside of it that waits. While the frames of
 * one on a share stack are saved, its own context stands first in its annex, and its block's context is the
 * trampoline's (scheduler/on_share_stack.c), or that coroutine's. */
static const aco__context_t *context_of_task(const aco_t *task)
{
    const aco__scratch_t *scratch = aco__self()->scratch;
    const int is_aside = !aco__has(task, ACO__PRIVATE) && scratch && task->aco__self.sp == scratch->runner.aco__self.sp;
    return is_aside ? aco__task_annex(task) : &task->aco__self;
}

/* A task on a share stack that does not run. */
static void walk_task(frames_t *frames)
{
    const aco_t *task = frames->co;
    aco__thread_t *self = aco__self();
    const aco__context_t *parent = self->unwind_parent, *context = context_of_task(task);
    int is_saved = aco__status(task) == ACO__RESUMING_SAVED && aco__is_on_its_stack(task, context->sp);
    if (is_saved)
        exchange_frames(task, context);
    self->unwind_parent = context;
    frames->unwinder->Backtrace(add_frame, frames);
    self->unwind_parent = parent;
    if (is_saved)
        exchange_frames(task, context);
}

/* The walker. */
static void *walk_from_here(void *arg)
{
    frames_t *frames = arg;
    aco_t *co = frames->co;
    aco__thread_t *self = aco__self();
    const aco__context_t *parent;
    if (aco__is_shared_task(co)) {
        walk_task(frames);
        return NULL;
    }
    if (aco__status(co) == ACO__SAVED && !aco__stack_restore(co, 0, backtrace_call))
        return ACO_ERROR;
    parent = self->unwind_parent;
    self->unwind_parent = &co->aco__self;
    frames->unwinder->Backtrace(add_frame, frames);
    self->unwind_parent = parent;
    return NULL;
}

static int walk_suspended(frames_t *frames)
{
    aco_t *walker = aco__new_called(backtrace_call, walk_from_here, frames, NULL, 0);
    int failed;
    if (!walker)
        return -1;
    frames->from = aco__returned;
    frames->after = 1;
    failed = aco_send(walker, NULL) == ACO_ERROR;
    if (failed) {
        int error = errno;
        aco_destroy(walker);
        errno = error;
        return -1;
    }
    aco_destroy(walker);
    return 0;
}

/* A task is no error here; a coroutine that waits for another one is none if its frames are there. */
static int can_walk(const aco_t *co)
{
    if (aco__is_task(co) && co->share_stack->aco__thread != aco__self()) {
        aco__fail(0, EPERM, backtrace_call, co, "is a task of another thread");
        return 0;
    }
    if (aco__is_task(co) || aco__status(co) == ACO__RESUMING)
        return 1;
    return aco__check(0, backtrace_call, co) == 0;
}

static void *entry_of(const aco_t *co)
{
    aco_function_t fn = aco__is_shared_task(co) ? aco__upcalls.entry_of_shared_task(co)
                        : aco__is_task(co)      ? aco__task_function(co)
                                                : aco__function(co);
    void *entry;
    memcpy(&entry, &fn, sizeof entry);
    return entry;
}

/* `caller`: where the running coroutine called the library. `sps`: room for `n` stack pointers, or NULL. */
static int backtrace_of(const aco_t *co, void **at, int n, const void *caller, const char **sps)
{
    const aco__unwinder_t *unwinder;
    frames_t *frames;
    size_t sz;
    if (n > MOST_FRAMES)
        n = MOST_FRAMES;
    if (n < 0 || (n && !at))
        return aco__fail(0, EINVAL, backtrace_call, co, n < 0 ? "the number is negative" : "`frames` is NULL");
    if (!co)
        return aco__fail(0, EINVAL, backtrace_call, co, "the coroutine is NULL");
    if (aco__status(co) == ACO__ENDED)
        return 0;
    if (co != aco__running() && !can_walk(co))
        return -1;
    if (aco_state(co) == ACO_STATE_READY) {
        if (n)
            at[0] = entry_of(co);
        return n != 0;
    }
    unwinder = aco__unwinder_loaded();
    if (!unwinder->Backtrace)
        return aco__fail(0, ENOTSUP, backtrace_call, co, "the process has no unwinder");
    sz = sizeof *frames + (size_t)n * sizeof(void *);
    frames = aco__memory_new(&sz);
    if (!frames)
        return aco__fail_memory(0, backtrace_call, sz);
    memcpy(&frames->co, &co, sizeof co); /* restoring its frames changes nothing that it sees */
    frames->unwinder = unwinder;
    frames->from = caller;
    frames->after = frames->n = 0;
    frames->room = n;
    frames->sps = sps;
    if (co == aco__running()) {
        unwinder->Backtrace(add_frame, frames);
    } else if (walk_suspended(frames) != 0) {
        int error = errno;
        aco__memory_free(frames, sz);
        errno = error;
        return -1;
    }
    n = frames->n;
    for (int i = 0; i < n; i++)
        at[i] = frames->at[i];
    aco__memory_free(frames, sz);
    return n;
}

/* Prints "PREFIX#0 ADDRESS in …". `into`: 1 for a return address: the call lies before it. 0, or -1 and errno. */
static int print_frame(int fd, const char *prefix, int number, const char *at, int into, char line[FRAME_LINE])
{
    size_t length = (size_t)snprintf(line, FRAME_LINE, "%s#%-2d %p in ", prefix, number, (const void *)at);
    aco__os_describe_code(at - into, line + length, FRAME_LINE - length - 1);
    length += strlen(line + length);
    line[length] = '\n';
    return aco__os_write(fd, line, length + 1);
}

/* Where these two return to is in the caller, which an inlined one (LTO) would not know. */
__attribute__((noinline)) int aco_backtrace(const aco_t *co, void **frames, int n)
{
    return backtrace_of(co, frames, n, __builtin_extract_return_addr(__builtin_return_address(0)), NULL);
}

__attribute__((noinline)) int aco_backtrace_print(const aco_t *co, int fd)
{
    size_t sz = PRINTED_FRAMES * sizeof(void *) + FRAME_LINE;
    void **at = aco__memory_new(&sz);
    char *line;
    const void *caller = __builtin_extract_return_addr(__builtin_return_address(0));
    int n, into, failed = 0, error;
    if (!at)
        return aco__fail_memory(0, backtrace_call, sz);
    line = (char *)(at + PRINTED_FRAMES);
    n = backtrace_of(co, at, PRINTED_FRAMES, caller, NULL);
    into = n > 0 && aco_state(co) != ACO_STATE_READY; /* the call lies before its return address */
    for (int i = 0; i < n && !failed; i++)
        failed = print_frame(fd, "", i, at[i], into, line) != 0;
    error = errno;
    aco__memory_free(at, sz);
    errno = error;
    return n < 0 || failed ? -1 : 0;
}

_Static_assert(ACO__KNOWN_SETS == 1 << (64 - 59), "known_set() takes the hash's highest bits");

/* ---- Many tasks ----
 *
 * Most of many tasks wait at few places. Where the depth is the same and all return addresses of a stack that was
 * walked lie in the same places of another one, the frames are the same: no unwinder is asked. */

/* The frames of a task that does not run. */
typedef struct still {
    const void *pc;
    const char *sp;    /* where they begin on the stack; */
    const char *bytes; /* where they lie: there, or in the save area */
    ptrdiff_t depth, valid; /* bytes to the stack's top; that lie there */
} still_t;

/* 0: the task has none, or none that can be compared. */
static int find_still(const aco_t *task, still_t *still)
{
    const aco__context_t *context = context_of_task(task);
    const int is_saved = aco__is_shared_task(task) && aco__status(task) == ACO__RESUMING_SAVED;
    if (!context || aco_state(task) == ACO_STATE_READY || !aco__is_on_its_stack(task, context->sp))
        return 0;
    still->pc = context->pc;
    still->sp = context->sp;
    still->depth = (const char *)task->share_stack->aco__top - still->sp;
    still->bytes = is_saved ? task->save_stack.ptr : still->sp;
    still->valid = is_saved ? (ptrdiff_t)task->save_stack.valid_sz : still->depth;
    return 1;
}

static const char *word_at(const still_t *still, ptrdiff_t offset)
{
    return *(const char *const volatile *)(const volatile void *)(still->bytes + offset);
}

/* Whether the task's stack is like this one. */
ACO__NO_SANITIZE static int is_like(const aco__known_stack_t *known, const still_t *still)
{
    if (!known->n || known->at[0] != still->pc || known->depth != still->depth || still->valid < known->needs)
        return 0;
    for (int i = 1; i < known->n; i++)
        if (word_at(still, known->offset[i]) != known->at[i])
            return 0;
    return 1;
}

/* Remembers a walk, if each return address lies where the processor's calls put it: right below the caller's frame. */
ACO__NO_SANITIZE static void remember_walk(aco__known_stack_t *known, const still_t *still, void *const *at,
                                           const char *const *sps, int n)
{
    known->n = 0;
    known->needs = 0;
    if (at[0] != still->pc)
        return;
    for (int i = 1; i < n; i++) {
        const ptrdiff_t offset = sps[i] - still->sp - (ptrdiff_t)sizeof(void *);
        if (offset < 0 || offset % (ptrdiff_t)sizeof(void *) || offset + (ptrdiff_t)sizeof(void *) > still->valid ||
            word_at(still, offset) != at[i])
            return;
        known->offset[i] = (uint32_t)offset;
        if (known->needs < offset + (ptrdiff_t)sizeof(void *))
            known->needs = offset + (ptrdiff_t)sizeof(void *);
    }
    memcpy(known->at, at, (size_t)n * sizeof *at);
    known->depth = still->depth;
    known->n = n;
}

static aco__known_stack_t *known_set(aco__known_stacks_t *known, const still_t *still)
{
    uint64_t key = (uint64_t)(uintptr_t)still->pc * 31 + (uint64_t)still->depth;
    return known->sets[key * UINT64_C(0x9E3779B97F4A7C15) >> 59];
}

int aco__backtrace_known(const aco_t *task, aco__known_stacks_t *known, void **frames, int n)
{
    const char *sps[ACO__MOST_SEEN_FRAMES];
    still_t still;
    aco__known_stack_t *set;
    if (n != ACO__MOST_SEEN_FRAMES || !find_still(task, &still))
        return backtrace_of(task, frames, n, NULL, NULL);
    set = known_set(known, &still);
    for (int i = 0; i < ACO__KNOWN_IN_SET; i++)
        if (is_like(&set[i], &still)) {
            memcpy(frames, set[i].at, (size_t)set[i].n * sizeof *frames);
            return set[i].n;
        }
    n = backtrace_of(task, frames, n, NULL, sps);
    if (n > 0 && n < ACO__MOST_SEEN_FRAMES && find_still(task, &still))
        remember_walk(&set[known->next++ % ACO__KNOWN_IN_SET], &still, frames, sps, n);
    return n;
}

/* ---- For the watchdog ---- */

static const aco__unwinder_t *prepared; /* atomic. In the handler aco__unwinder_loaded() might wait for a lock */

/* Here glibc itself looks up unwind tables, behind a lock: a handler that interrupts that would wait for ever. */
#if defined(__GLIBC__) && (defined(__i386__) || defined(__s390__))
enum { LOOKS_UP_BEHIND_A_LOCK = 1 };
#else
enum { LOOKS_UP_BEHIND_A_LOCK = 0 };
#endif

void aco__backtrace_prepare(void)
{
    if (!LOOKS_UP_BEHIND_A_LOCK)
        __atomic_store_n(&prepared, aco__unwinder_loaded(), __ATOMIC_RELEASE);
}

/* In a handler: the frames of frames->co behind the handler's own, at most `room`. */
static void walk_interrupted(frames_t *frames, const aco__unwinder_t *unwinder, const void *handler_returns, int room)
{
    frames->unwinder = unwinder;
    frames->from = handler_returns;
    frames->after = 1;
    frames->n = 0;
    frames->room = room;
    frames->sps = NULL;
    unwinder->Backtrace(add_frame, frames);
}

void aco__backtrace_interrupted(const char *call, const void *handler_returns)
{
    union {
        frames_t frames;
        char room[sizeof(frames_t) + INTERRUPTED_FRAMES * sizeof(void *)]; // cppcheck-suppress unusedStructMember
    } memory;
    frames_t *frames = &memory.frames;
    const aco__unwinder_t *unwinder = __atomic_load_n(&prepared, __ATOMIC_ACQUIRE);
    char line[FRAME_LINE], prefix[64];
    if (!unwinder || !unwinder->Backtrace)
        return;
    frames->co = aco__running();
    walk_interrupted(frames, unwinder, handler_returns, INTERRUPTED_FRAMES);
    snprintf(prefix, sizeof prefix, "acorn: %s: ", call);
    for (int i = 0; i < frames->n; i++)
        print_frame(2, prefix, i, frames->at[i], i > 0, line);
}

int aco__sample_prepare(void)
{
    aco__backtrace_prepare();
    return __atomic_load_n(&prepared, __ATOMIC_RELAXED) ? 0 : -1;
}

/* A walk needs so much stack, if the handler has none of its own. */
static int has_room_to_walk(const aco_t *running)
{
    enum { WALK_STACK = 16 << 10 };
    const char *here = __builtin_frame_address(0);
    return !running || !aco__is_on_its_stack(running, here) ||
           (size_t)(here - (const char *)running->share_stack->ptr) > WALK_STACK;
}

typedef union sample_frames {
    frames_t frames;
    char room[sizeof(frames_t) + ACO__MOST_SEEN_FRAMES * sizeof(void *)]; // cppcheck-suppress unusedStructMember
} sample_frames_t;

void aco__sample_interrupted(aco__sample_t *sample, const void *handler_returns)
{
    sample_frames_t memory;
    frames_t *frames = &memory.frames;
    const aco__unwinder_t *unwinder = __atomic_load_n(&prepared, __ATOMIC_ACQUIRE);
    const aco_t *running = name_interrupted(sample);
    if (!handler_returns || !unwinder || !unwinder->Backtrace || !has_room_to_walk(running))
        return;
    memcpy(&frames->co, &running, sizeof running);
    walk_interrupted(frames, unwinder, handler_returns, ACO__MOST_SEEN_FRAMES);
    sample->frame_count = frames->n;
    memcpy(sample->frames, frames->at, (size_t)frames->n * sizeof(void *));
}
#else
int aco__backtrace_known(const aco_t *task, aco__known_stacks_t *known, void **frames, int n)
{
    (void)known;
    return aco_backtrace(task, frames, n);
}

void aco__backtrace_prepare(void)
{
}

int aco__sample_prepare(void)
{
    return -1;
}

void aco__sample_interrupted(aco__sample_t *sample, const void *handler_returns)
{
    (void)handler_returns;
    (void)name_interrupted(sample);
}

void aco__backtrace_interrupted(const char *call, const void *handler_returns)
{
    (void)call, (void)handler_returns;
}

int aco_backtrace(const aco_t *co, void **frames, int n)
{
    (void)frames, (void)n;
    return aco__fail(0, ENOTSUP, backtrace_call, co, "not on this platform");
}

int aco_backtrace_print(const aco_t *co, int fd)
{
    (void)fd;
    return aco_backtrace(co, NULL, 0);
}
#endif
