/* Every request to the system fails once. malloc() is not in its table: the linker's --wrap is this file's. */
#include "replace.h" /* first */

#include "aco.h"
#include "child.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>

/* ---- The failing system ---- */

typedef struct faulty {
    int calls;
    int fail_from, fail_to; /* the calls that fail, counted from 1; none where 0 */
    int error;
} faulty_t;
static faulty_t mmaps, mprotects, madvises, mallocs;
static int misalign; /* make mappings of a slab's size land off its alignment */

static int refused(faulty_t *what)
{
    int call = ++what->calls;
    if (call < what->fail_from || call > what->fail_to)
        return 0;
    errno = what->error;
    return 1;
}

REAL(mmap);
static void *failing_mmap(void *at, size_t sz, int protection, int flags)
{
    if (refused(&mmaps))
        return MAP_FAILED;
    if (misalign && sz == 2 << 20) {
        char *p = real_mmap(at, sz + 4096, protection, flags);
        if (p != MAP_FAILED && ((uintptr_t)p & (sz - 1)) == 0) {
            munmap(p, 4096);
            return p + 4096;
        }
        if (p != MAP_FAILED)
            munmap(p + sz, 4096);
        return p;
    }
    return real_mmap(at, sz, protection, flags);
}

FAILING(int, mprotect, (void *at, size_t sz, int protection), (at, sz, protection), refused(&mprotects), -1)
FAILING(int, madvise, (void *at, size_t sz, int advice), (at, sz, advice), refused(&madvises), -1)

void *__real_malloc(size_t sz);
void *__wrap_malloc(size_t sz);
void *__wrap_malloc(size_t sz)
{
    return refused(&mallocs) ? NULL : __real_malloc(sz);
}

static void fail(faulty_t *what, int nth, int error)
{
    what->fail_from = what->calls + nth;
    what->fail_to = nth ? what->fail_from : 0;
    what->error = error;
}

static void fail_all(faulty_t *what, int error)
{
    fail(what, 1, error);
    what->fail_to = INT_MAX;
}

/* ---- What runs in the children ---- */

static aco_t *main_co;
static aco_share_stack_t *stack;

static faulty_t *fault;
static int fault_nth, fault_error;
static void (*work)(void);

static void work_with_fault(void)
{
    fail(fault, fault_nth, fault_error);
    work();
    fail(fault, 0, 0);
}

/* Makes the first, second, ... request of `act` fail, until it makes no more. Each failure must abort as described.
 * There must be `requests` of them, so that a test without requests cannot pass, or one more, when a slab happened to
 * lie unaligned. */
static void each_one_aborts(void (*act)(void), faulty_t *what, int error, const char *call, const char *reason,
                            int requests)
{
    work = act;
    fault = what;
    fault_error = error;
    for (fault_nth = 1; fault_nth <= requests; fault_nth++)
        ABORTS(work_with_fault, call, NULL, reason);
    if (child_run(work_with_fault).status != 0) {
        ABORTS(work_with_fault, call, NULL, reason);
        fault_nth++;
    }
    PASSES(work_with_fault);
}

static void yielder(void)
{
    char bytes[600];
    memset(bytes, 1, sizeof bytes);
    for (;;) {
        __asm__ volatile("" : "+m"(bytes));
        aco_yield();
        CHECK_EQ(bytes[599], 1);
    }
}

static void deep_yielder(void)
{
    char bytes[40000];
    memset(bytes, 1, sizeof bytes);
    for (;;) {
        __asm__ volatile("" : "+m"(bytes));
        aco_yield();
        CHECK_EQ(bytes[39999], 1);
    }
}

static void make_main(void)
{
    aco_destroy(aco_create(NULL, NULL, 0, NULL, NULL));
}

static void make_main_misaligned(void)
{
    misalign = 1;
    make_main();
    misalign = 0;
}

static void make_guarded_stack(void)
{
    aco_share_stack_destroy(aco_share_stack_new2(8192, 1));
}

static void make_stack(void)
{
    aco_share_stack_destroy(aco_share_stack_new2(8192, 0));
}

static void make_in_slab(void)
{
    aco_destroy(aco_create(main_co, stack, 1500, yielder, NULL)); /* a class that has no slab yet */
}

static void make_with_large_area(void)
{
    aco_destroy(aco_create(main_co, stack, 100000, yielder, NULL));
}

static void copy_two(aco_cofuncp_t fp)
{
    aco_t *a = aco_create(main_co, stack, 0, fp, NULL), *b = aco_create(main_co, stack, 0, fp, NULL);
    for (int i = 0; i < 3; i++) {
        aco_resume(a);
        aco_resume(b);
    }
    aco_destroy(a);
    aco_destroy(b);
}

static void copy_deep(void)
{
    copy_two(deep_yielder);
}

static void copy_little(void)
{
    copy_two(yielder);
}

static void mem_new(void)
{
    void *p = aco_mem_new(10);
    __asm__ volatile("" : "+r"(p)); /* else a compiler may remove both calls */
    free(p);
}

typedef struct large {
    char bytes[100000];
} large_t;
ACO_LOCAL(large_t, large);

static void use_variable(void)
{
    CHECK_EQ(large()->bytes[99999], 0);
}

/* ---- The promises ---- */

/* In the C library's words. */
static const char *no_memory(void)
{
    return strerror(ENOMEM);
}

/* Promise: failed mappings abort, with a line that says why. */
static void mappings(void)
{
    char no_memory_for[80];
    snprintf(no_memory_for, sizeof no_memory_for, "no memory for 8192 bytes: %s", no_memory());
    each_one_aborts(make_main, &mmaps, ENOMEM, "aco_create", no_memory(), 2); /* the thread's heap, a slab */
    each_one_aborts(make_main_misaligned, &mmaps, ENOMEM, "aco_create", no_memory(), 3);
    each_one_aborts(make_stack, &mmaps, ENOMEM, "aco_share_stack_new2", no_memory_for, 1);
    each_one_aborts(make_guarded_stack, &mmaps, ENOMEM, "aco_share_stack_new2", no_memory(), 1);
    each_one_aborts(make_stack, &mmaps, EPERM, "aco_share_stack_new2", strerror(EPERM), 1);
    each_one_aborts(make_stack, &mmaps, EAGAIN, "aco_share_stack_new2", "RLIMIT_MEMLOCK", 1);
}

static void mappings_of_a_running_thread(void)
{
    aco_destroy(aco_create(main_co, stack, 0, yielder, NULL)); /* leaves a slab for blocks */
    each_one_aborts(make_in_slab, &mmaps, ENOMEM, "aco_create", no_memory(), 1);
    each_one_aborts(copy_little, &mmaps, ENOMEM, "aco_resume", no_memory(), 1); /* a class for the grown area */
}

/* Promise: without memory for a large save area the call aborts, when the area is made and when it grows; so does
 * aco_mem_new(). */
static void save_areas(void)
{
    child_end_t end;
    each_one_aborts(make_with_large_area, &mallocs, ENOMEM, "aco_create", no_memory(), 1);
    each_one_aborts(copy_deep, &mallocs, ENOMEM, "aco_resume", no_memory(), 2);
    each_one_aborts(use_variable, &mallocs, ENOMEM, "ACO_LOCAL", "large: no memory for 100000 bytes", 1);
    work = mem_new;
    fault = &mallocs;
    fault_error = ENOMEM;
    fault_nth = 1;
    end = child_run(work_with_fault);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    CHECK(is_one_line(end.text) && strstr(end.text, "allocate memory"));
}

static void touch_guard_below_fallback(void)
{
    aco_share_stack_t *guarded;
    int before = mprotects.calls;
    fail_all(&madvises, EINVAL);
    guarded = aco_share_stack_new2(8192, 1);
    CHECK_EQ(mprotects.calls - before, 1);
    *(volatile char *)guarded->ptr = 1;
    if (check_failures == 0)
        ((volatile char *)guarded->ptr)[-1] = 1;
}

static void guard_refused(void)
{
    fail_all(&madvises, EINVAL);
    fail_all(&mprotects, ENOMEM);
    aco_share_stack_new2(8192, 1);
}

static void unguarded_needs_none(void)
{
    fail_all(&madvises, EINVAL);
    fail_all(&mprotects, ENOMEM);
    aco_share_stack_destroy(aco_share_stack_new2(8192, 0));
}

static void advice_refused(void)
{
    enum { MANY = 300000 }; /* many slabs, also with small blocks of 32 bits; large pages asked for, then given back */
    static aco_t *all[MANY];
    int before = madvises.calls;
    fail_all(&madvises, EINVAL);
    errno = 0;
    for (int i = 0; i < MANY; i++)
        all[i] = aco_create(main_co, stack, 0, yielder, NULL);
    aco_resume(all[0]);
    aco_resume(all[1]);
    aco_resume(all[0]);
    for (int i = 0; i < MANY; i++)
        aco_destroy(all[i]);
    CHECK_EQ(errno, 0);
    CHECK(madvises.calls - before >= 2);
    copy_little();
    fail(&madvises, 0, 0);
}

static void only_yields(void)
{
    for (;;)
        aco_yield();
}

/* Promise: without memory for slots (src/base/slab.h) save areas come from where the first ones did. */
static void slots_refused(void)
{
    enum { MANY = 100, FEW = 10 };
    aco_t *all[MANY];
    int before;
    for (int i = 0; i < MANY; i++)
        all[i] = aco_create(main_co, stack, 0, only_yields, NULL);
    for (int i = 0; i < FEW; i++)
        aco_resume(all[i]);
    before = mmaps.calls;
    fail_all(&mmaps, ENOMEM);
    errno = 0;
    for (int i = FEW; i < 2 * MANY; i++)
        aco_resume(all[i % MANY]);
    CHECK_EQ(errno, 0);
    CHECK(mmaps.calls - before >= 2);
    for (int i = 0; i + 1 < MANY; i++)
        CHECK_EQ(all[i]->save_stack.ct_save, 2);
    fail(&mmaps, 0, 0);
    for (int i = 0; i < MANY; i++)
        aco_destroy(all[i]);
}

/* Promise: failing madvise() does no harm: other means make the guard page, and slabs work without.
 * aco_share_stack_new2() aborts only where the other means fail too. */
static void advice(void)
{
    DIES_OF(touch_guard_below_fallback, SIGSEGV);
    ABORTS(guard_refused, "aco_share_stack_new2", NULL, no_memory());
    PASSES(unguarded_needs_none);
    PASSES(advice_refused);
    PASSES(slots_refused);
}

int main(void)
{
    setenv("ACO_EXPLAIN_OVERFLOW", "0", 1); /* whose request for the heap may fail: the next one is tried */
    REPLACE(mmap);
    REPLACE(mprotect);
    REPLACE(madvise);
    aco_thread_init(NULL);
    mappings(); /* first: a thread without a heap */
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    stack = aco_share_stack_new(0);
    mappings_of_a_running_thread();
    save_areas();
    advice();
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    return check_result("alloc_failure");
}
