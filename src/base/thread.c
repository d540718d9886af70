/* Thread records: where they are, how a thread gets ready for coroutines, what is freed when it ends. */
#include "base/scratch.h"

#include <string.h>

#if defined(ACO__THREAD_FOUND)
static __thread aco__thread_t thread;

__attribute__((noinline)) aco__thread_t *aco__thread_found(void)
{
    __asm__ volatile("");
    return &thread;
}
#elif defined(ACO__THREAD_TLS)
ACO__NAMED_BY_ASSEMBLY ACO_API __thread aco__thread_t aco__thread __attribute__((tls_model("initial-exec")));
#endif

aco__thread_exits_t aco__thread_exits;

/* Some unwinders read all registers that a frame saved, even if they need few. On s390x those are at its stack pointer,
 * so this one points to zeros. */
#ifdef __s390x__
static const uint64_t nothing_saved[20];
const aco__context_t aco__no_context = {.sp = (void *)(uintptr_t)nothing_saved};
#else
const aco__context_t aco__no_context;
#endif
static aco__thread_t nobody = {.unwind_parent = &aco__no_context};
aco__thread_t *const aco__nobody = &nobody;

/* ---- The environment of new coroutines ---- */

#if defined(__x86_64__) || defined(__i386__)
/* 1 on processors where ldmxcsr is cheaper than waiting for stmxcsr's result (measured on AMD's Zen 5:
 * bench/lab/switch-check.c). -1 on i386 processors without SSE. */
static int8_t fp_load_always(void)
{
    static int8_t known = 2;
    int8_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 2) {
        __builtin_cpu_init();
        answer = !__builtin_cpu_supports("sse") ? -1 : __builtin_cpu_is("amd") && __builtin_cpu_supports("avx2");
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}
#else
static int8_t fp_load_always(void)
{
    return 0;
}
#endif

static void read_new_environment(aco__thread_t *self)
{
    aco__fp_read(&self->new_fp_control, &self->new_fp_control2);
    self->new_fp_control &= ~(uint32_t)ACO__FP_STATUS;
}

int aco__debug_units, aco__notes_spawns;

/* Called before main(), or when a library is loaded. */
void aco__debug_unit(void)
{
    aco__debug_units = 1;
    __atomic_store_n(&aco__notes_spawns, 1, __ATOMIC_RELAXED);
}

aco__thread_t *aco__thread_ready(void)
{
    aco__thread_t *self = aco__self();
    if (aco_unlikely(!self->ready)) {
        self->fp_load_always = fp_load_always();
        read_new_environment(self);
        self->cached_room = ACO__MOST_CACHED;
        self->ready = 1;
        ACO__UPCALL(thread_begins, ());
    }
    return self;
}

void aco_thread_init(aco_cofuncp_t last_word)
{
    aco__thread_t *self = aco__thread_ready();
    read_new_environment(self);
    self->last_word = last_word;
}

/* ---- Shadow stacks ---- */

int aco__has_shadow_stack(void)
{
#if defined(__x86_64__)
    uintptr_t pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer)); /* does nothing if there is no shadow stack */
    return pointer != 0;
#elif defined(__aarch64__)
    register uintptr_t feature __asm__("x16") = 1;
    __asm__ volatile("hint #40" : "+r"(feature)); /* chkfeat x16: clears the bit if a Guarded Control Stack is on */
    return feature == 0;
#else
    return 0;
#endif
}

/* ---- All records, where the library can be unloaded ---- */

#ifdef _WIN32
static aco__thread_t *records; /* the list of all threads' records; under the process lock */

static void record_begins(aco__thread_t *self)
{
    aco__os_lock();
    self->next = records;
    self->link = &records;
    if (records)
        records->link = &self->next;
    records = self;
    aco__os_unlock();
}

static void record_ends(aco__thread_t *self)
{
    aco__os_lock();
    ACO__ASSERT(*self->link == self && (!self->next || self->next->link == &self->next));
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    aco__os_unlock();
}
#elif defined(ACO__THREAD_SLOT)
static void record_begins(aco__thread_t *self)
{
    (void)self;
}

static void record_ends(aco__thread_t *self)
{
    (void)self;
}
#endif

/* ---- The end ---- */

ACO__COLD ACO__FOREIGN_ENTRY static void thread_ends(void *arg)
{
    aco__thread_t *self = arg;
#ifdef ACO__THREAD_SLOT
    aco__os_at_thread_exit(thread_ends, self); /* the system has cleared the slot before this call */
#endif
    if (self->scratch) {
        if (self->scratch->has_root_cold)
            ACO__UPCALL(root_values_destroy, (self->scratch)); /* destructors may use coroutines */
        aco__thread_exits.scratch(self);
    }
    if (self->scheduler)
        self->scheduler->thread_ends(self);
    ACO__UPCALL(cache_free, (self));
    if (self->heap)
        aco__thread_exits.heap(self);
#ifdef ACO__THREAD_SLOT
    aco__os_slot_clear();
    record_ends(self);
    aco__os_unmap(self, aco__round_up(sizeof *self, aco__os_page_size()));
#endif
}

#ifdef ACO__THREAD_SLOT
aco__thread_t *aco__thread_new(void)
{
    int saved = errno;
    aco__thread_t *self = aco__os_map(aco__round_up(sizeof *self, aco__os_page_size()));
    if (!self)
        aco__os_die("no memory for the thread record");
    aco__os_at_thread_exit(thread_ends, self);
    record_begins(self);
    errno = saved;
    return self;
}
#endif

void aco__thread_will_end(void)
{
    aco__thread_ready(); /* a thread with a heap may get cached coroutines, and then create coroutines inline */
    aco__os_at_thread_exit(thread_ends, aco__self());
}

#ifdef _WIN32
/* FreeLibrary(): frees what the library has for threads that still live, for the process and in caches. Objects that
 * the user has not destroyed stay. */
static void library_ends(void)
{
    while (records)
        thread_ends(records);
    ACO__UPCALL(pools_end, ());
    ACO__UPCALL(usages_end, ());
    if (aco__thread_exits.heaps_end)
        aco__thread_exits.heaps_end();
}

ACO__AT_LOAD static void end_when_unloaded(void)
{
    aco__os_at_unload(library_ends);
}
#endif
