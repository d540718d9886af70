/* Misuse: each case, in a child, aborts after one line "acorn: <call>: [coroutine <address>: ]<reason>". Objects are
 * made in the parent, so that their addresses are known; what a debug build checks in addition stands under
 * ACO_DEBUG. */
#define _GNU_SOURCE
#include "misuse.h"
#include "child.h"
#include "lacking.h"

#include <stdint.h>

static aco_t *main_co, *co, *other;
static aco_share_stack_t *stack;

static void yielder(void)
{
    for (;;)
        aco_yield();
}

static void ender(void)
{
    aco_exit();
}

static void returner(void)
{
}

/* `co` and `other`, both on `stack`. */
static void set_up(aco_cofuncp_t fp)
{
    stack = aco_share_stack_new(0);
    co = aco_create(main_co, stack, 0, fp, NULL);
    other = aco_create(main_co, stack, 0, yielder, NULL);
}

static void tear_down(void)
{
    aco_destroy(co);
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

static void on_thread(void (*act)(void))
{
    pthread_t thread;
    union {
        void (*act)(void);
        void *(*start)(void *);
    } cast;
    cast.act = act;
    pthread_create(&thread, NULL, cast.start, NULL);
    pthread_join(thread, NULL);
}

/* ---- aco_resume ---- */

static void resume_null(void)
{
    aco_resume(NULL);
}

static void resume_co(void)
{
    aco_resume(co);
}

static void resume_main(void)
{
    aco_resume(main_co);
}

static void resume_self(void)
{
    aco_resume(aco_get_co());
}

static void resume_co_on_thread(void)
{
    on_thread(resume_co);
}

static void thread_with_main_resumes(void)
{
    aco_t *own_main;
    aco_thread_init(NULL);
    own_main = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_resume(co);
    aco_destroy(own_main);
}

static void resume_co_on_thread_with_main(void)
{
    on_thread(thread_with_main_resumes);
}

/* A coroutine of this thread, made from `created_late`'s main coroutine, on a stack that another thread uses. */
static aco_t *created_late;

static void resume_created_late(void)
{
    aco_resume(created_late);
}

static void *make_thread_record(void *unused)
{
    (void)unused;
    aco_thread_init(NULL);
    aco_resume(co);
    return NULL;
}

static void *make_main_object(void *unused)
{
    (void)unused;
    return aco_create(NULL, NULL, 0, NULL, NULL);
}

/* Promise: aco_resume() of NULL, an ended, a main or a running coroutine aborts. */
static void resume_what_cannot(void)
{
    set_up(ender);
    ABORTS(resume_null, "aco_resume", NULL, "NULL");
    ABORTS(resume_main, "aco_resume", main_co, "main coroutine");
    aco_resume(co);
    ABORTS(resume_co, "aco_resume", co, "ended");
    tear_down();
    set_up(resume_self);
    ABORTS(resume_co, "aco_resume", co, "is running");
    tear_down();
    set_up(resume_null);
    ABORTS(resume_co, "aco_resume", NULL, "NULL");
    tear_down();
    set_up(resume_main);
    ABORTS(resume_co, "aco_resume", main_co, "main coroutine");
    tear_down();
}

/* Promise: so does the first resume on another thread, and one that would copy frames; in debug builds every one. */
static void resume_on_another_thread(void)
{
    set_up(yielder);
    ABORTS(resume_co_on_thread, "aco_resume", co, "another thread");
    ABORTS(resume_co_on_thread_with_main, "aco_resume", co, "another thread");
    aco_resume(co);
    aco_resume(other);
    ABORTS(resume_co_on_thread, "aco_resume", co, "another thread");
    ABORTS(resume_co_on_thread_with_main, "aco_resume", co, "another thread");
#if ACO_DEBUG
    aco_resume(co);
    ABORTS(resume_co_on_thread, "aco_resume", co, "another thread");
    ABORTS(resume_co_on_thread_with_main, "aco_resume", co, "another thread");
#endif
    tear_down();
}

/* Promise: a share stack serves one thread while a coroutine is started on it, and then another one. */
static pthread_barrier_t barrier;

static void *use_stack_and_wait(void *unused)
{
    aco_t *own_main;
    aco_thread_init(NULL);
    own_main = make_main_object(NULL);
    co = aco_create(own_main, stack, 0, yielder, NULL);
    make_thread_record(unused);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    aco_destroy(co);
    aco_destroy(own_main);
    return NULL;
}

static void stack_of_another_thread(void)
{
    pthread_t thread;
    stack = aco_share_stack_new(0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, use_stack_and_wait, NULL);
    pthread_barrier_wait(&barrier);
    created_late = aco_create(main_co, stack, 0, ender, NULL);
    ABORTS(resume_created_late, "aco_resume", created_late, "belongs to another thread");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    PASSES(resume_created_late);
    aco_destroy(created_late);
    pthread_barrier_destroy(&barrier);
    aco_share_stack_destroy(stack);
}

/* ---- Yield, exit, getters ---- */

static void yield(void)
{
    aco_yield();
}

static void get_arg(void)
{
    CHECK(aco_get_arg() == NULL);
}

static void thread_yields(void)
{
    on_thread(yield);
}

static void exit1_other(void)
{
    aco_exit1(other);
}

static void exit1_null(void)
{
    aco_exit1(NULL);
}

/* Promise: yield, exit and aco_get_arg() without a running coroutine abort, as does the exit of one that does not
 * run. */
static void nobody_runs(void)
{
    ABORTS(yield, "aco_yield", NULL, "no coroutine is running");
    ABORTS(thread_yields, "aco_yield", NULL, "no coroutine is running");
    ABORTS(ender, "aco_exit", NULL, "no coroutine is running");
    ABORTS(get_arg, "aco_get_arg", NULL, "no coroutine is running");
    ABORTS(exit1_null, "aco_exit1", NULL, "NULL");
    set_up(exit1_other);
    ABORTS(exit1_other, "aco_exit1", other, "not running"); /* by main */
    ABORTS(resume_co, "aco_exit1", other, "not running");   /* by co */
    aco_resume(other);
    ABORTS(ender, "aco_exit", NULL, "no coroutine is running"); /* after a coroutine ran */
    tear_down();
}

#if ACO_DEBUG
static void yield1_other(void)
{
    aco_yield1(other);
}

static void yield1_null(void)
{
    aco_yield1(NULL);
}

/* Promise: in debug builds aco_yield1() of a coroutine that does not run aborts. */
static void yield1_of_another(void)
{
    set_up(yield1_other);
    ABORTS(yield1_other, "aco_yield1", other, "not running");
    ABORTS(resume_co, "aco_yield1", other, "not running");
    tear_down();
    set_up(yield1_null);
    ABORTS(yield1_null, "aco_yield1", NULL, "no coroutine is running");
    ABORTS(resume_co, "aco_yield1", NULL, "the coroutine is NULL");
    tear_down();
}

static void resume_co_sharing_fp(void)
{
    resume_sharing_fp(co);
}

/* Promise: debug builds notice a unit with ACO_CONFIG_SHARE_FPU_MXCSR_ENV that switches a coroutine with an environment
 * of its own, at resume and at yield. */
static void mixed_units(void)
{
    set_up(yielder);
    ABORTS(resume_co_sharing_fp, "aco_resume", co, "ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
    tear_down();
    set_up(yield_sharing_fp);
    ABORTS(resume_co, "aco_yield", co, "ACO_CONFIG_SHARE_FPU_MXCSR_ENV");
    tear_down();
    set_up(ender);
    aco_destroy(co);
    co = create_sharing_fp(main_co, stack, yielder);
    PASSES(resume_co); /* the other way round each switch looks at the coroutine */
    PASSES(resume_co_sharing_fp);
    tear_down();
}
#endif

/* ---- aco_create, aco_reset, aco_destroy ---- */

static aco_t *create_main;
static aco_share_stack_t *create_stack;
static aco_cofuncp_t create_fp;

static void create(void)
{
    CHECK(aco_create(create_main, create_stack, 0, create_fp, NULL) == NULL);
}

/* Promise: aco_create() aborts where one or two of main_co, share_stack and fp are missing, and names a missing one. */
static void create_with_missing(void)
{
    set_up(ender);
    for (int given = 1; given < 7; given++) {
        create_main = given & 1 ? main_co : NULL;
        create_stack = given & 2 ? stack : NULL;
        create_fp = given & 4 ? ender : NULL;
        ABORTS(create, "aco_create", NULL,
               !create_main    ? "main_co is NULL"
               : !create_stack ? "share_stack is NULL"
                               : "entry function is NULL");
    }
    create_stack = stack;
    create_fp = ender;
    create_main = co;
    ABORTS(create, "aco_create", co, "not a main coroutine");
    aco_resume(co);
    ABORTS(create, "aco_create", co, "not a main coroutine");
    tear_down();
}

static void reset_co(void)
{
    aco_reset(co, ender, NULL);
}

static void reset_main(void)
{
    aco_reset(main_co, ender, NULL);
}

static void reset_null(void)
{
    aco_reset(NULL, ender, NULL);
}

static void reset_without_function(void)
{
    aco_reset(co, NULL, NULL);
}

static aco_t *native;

static void *native_body(void *arg)
{
    return arg;
}

static void reset_native(void)
{
    aco_reset(native, ender, NULL);
}

static void destroy_stack_of_native(void)
{
    aco_share_stack_destroy(native->share_stack);
}

/* Promise: libaco's calls say which call is the right one for a coroutine of aco_new() and for its stack. */
static void reset_what_is_native(void)
{
    native = aco_new(native_body, NULL, NULL);
    aco_resume(native);
    ABORTS(reset_native, "aco_reset", native, "aco_restart");
    CHECK_EQ(aco_restart(native, native_body, NULL), 0);
    ABORTS(destroy_stack_of_native, "aco_share_stack_destroy", native, "aco_destroy");
    aco_destroy(native);
}

/* Promise: aco_reset() takes coroutines that have ended or never ran, and an entry function. */
static void reset_what_cannot(void)
{
    set_up(yielder);
    ABORTS(reset_null, "aco_reset", NULL, "NULL");
    ABORTS(reset_main, "aco_reset", main_co, "main coroutine");
    ABORTS(reset_without_function, "aco_reset", co, "entry function is NULL");
    aco_resume(co);
    ABORTS(reset_co, "aco_reset", co, "has not ended"); /* suspended */
    aco_resume(other);
    ABORTS(reset_co, "aco_reset", co, "has not ended"); /* saved */
    tear_down();
    set_up(reset_co);
    ABORTS(resume_co, "aco_reset", co, "has not ended"); /* running */
    tear_down();
}

static void destroy_null(void)
{
    aco_destroy(NULL);
}

static void destroy_self(void)
{
    aco_destroy(aco_get_co());
}

static void destroy_twice(void)
{
    aco_destroy(co);
    aco_destroy(co);
}

static void destroy_then_resume(void)
{
    aco_destroy(co);
    aco_resume(co);
}

/* Promise: aco_destroy() of NULL does nothing; of itself or a second time it aborts, and so does resuming what was
 * destroyed. */
static void destroy_what_cannot(void)
{
    set_up(destroy_self);
    PASSES(destroy_null);
    ABORTS(resume_co, "aco_destroy", co, "is running");
    ABORTS(destroy_twice, "aco_destroy", co, "was destroyed before");
    ABORTS(destroy_then_resume, "aco_resume", co, "was destroyed");
    tear_down();
    set_up(yielder);
    aco_resume(co);
    ABORTS(destroy_twice, "aco_destroy", co, "was destroyed before");
    aco_resume(other);
    ABORTS(destroy_then_resume, "aco_resume", co, "was destroyed");
    tear_down();
}

/* ---- Share stacks ---- */

static void destroy_stack(void)
{
    aco_share_stack_destroy(stack);
}

static void destroy_owner_then_stack(void)
{
    aco_destroy(other);
    aco_share_stack_destroy(stack);
}

static void destroy_null_stack(void)
{
    aco_share_stack_destroy(NULL);
}

/* Promise: aco_share_stack_destroy() of NULL, or of a stack with a coroutine that has not ended, aborts. */
static void destroy_stack_in_use(void)
{
    set_up(yielder);
    ABORTS(destroy_null_stack, "aco_share_stack_destroy", NULL, "NULL");
    aco_resume(co);
    ABORTS(destroy_stack, "aco_share_stack_destroy", co, "not ended");
    aco_resume(other);
    ABORTS(destroy_stack, "aco_share_stack_destroy", other, "not ended");
    ABORTS(destroy_owner_then_stack, "aco_share_stack_destroy", NULL, "1 started coroutine"); /* saved */
    tear_down();
    set_up(destroy_stack);
    ABORTS(resume_co, "aco_share_stack_destroy", co, "not ended");
    tear_down();
}

/* The most that is written below the stack without leaving its mapping. */
static void write_below(void)
{
    ((volatile char *)stack->ptr)[-1] ^= 1;
}

static void overflow_then_yield(void)
{
    write_below();
    aco_yield();
    aco_exit();
}

static void overflow_then_exit(void)
{
    write_below();
    aco_exit();
}

/* A frame that reaches beyond the stack and touches nothing near its end; only the stack pointer tells. */
static __attribute__((noinline)) void reach_beyond(void)
{
    char here;
    size_t left = (size_t)((uintptr_t)&here - (uintptr_t)stack->ptr);
    volatile char *far = __builtin_alloca(left + 2048);
    far[0] = 1;
    aco_yield();
    CHECK_EQ(far[0], 1);
}

static void overflow_by_frame(void)
{
    reach_beyond();
    aco_exit();
}

#if !ACO_DEBUG
static void resume_co_then_other(void)
{
    aco_resume(co);
    aco_resume(other);
}

static void resume_co_then_destroy_stack(void)
{
    aco_resume(co);
    if (!co->is_end)
        aco_destroy(co);
    aco_share_stack_destroy(stack);
}
#endif

static void overflow_in_main_then_destroy(void)
{
    write_below();
    destroy_stack();
}

static void set_up_unguarded(aco_cofuncp_t fp)
{
    stack = aco_share_stack_new2(16384, 0);
    co = aco_create(main_co, stack, 0, fp, NULL);
    other = aco_create(main_co, stack, 0, yielder, NULL);
}

/* The same by a frame that skips the bytes next to the stack. What it touches lies below the stack's mapping: the stack
 * must be one with room there. */
static void frame_beyond_the_stack(void)
{
    enum { ROOM = 1 << 16, TRIES = 64 };
    aco_share_stack_t *without_room[TRIES];
    int tries = 0;
    void *room;
    for (;; tries++) {
        set_up_unguarded(overflow_by_frame);
        room = mmap((char *)stack->aco__map - ROOM, ROOM, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (room == (char *)stack->aco__map - ROOM || tries == TRIES)
            break;
        aco_destroy(co);
        aco_destroy(other);
        without_room[tries] = stack;
    }
    CHECK(tries < TRIES);
#if ACO_DEBUG
    ABORTS(resume_co, "aco_yield", co, "overflowed");
#else
    ABORTS(resume_co_then_other, "aco_resume", co, "outside its share stack");
#endif
    munmap(room, ROOM);
    tear_down();
    while (tries--)
        aco_share_stack_destroy(without_room[tries]);
}

/* Promise: an overflow of a stack without guard page is noticed when bytes are saved, when its coroutine ends and when
 * it is destroyed; in debug builds at yield. */
static void overflow_without_guard_page(void)
{
    set_up_unguarded(overflow_then_yield);
#if ACO_DEBUG
    ABORTS(resume_co, "aco_yield", co, "overflowed");
#else
    PASSES(resume_co);
    ABORTS(resume_co_then_other, "aco_resume", co, "overflowed");
    ABORTS(resume_co_then_destroy_stack, "aco_share_stack_destroy", NULL, "overflowed");
#endif
    ABORTS(overflow_in_main_then_destroy, "aco_share_stack_destroy", NULL, "overflowed");
    tear_down();
    set_up_unguarded(overflow_then_exit);
    ABORTS(resume_co, "aco_exit", co, "overflowed");
    tear_down();
    frame_beyond_the_stack();
}

/* ---- Requests that no system grants ---- */

static size_t huge;

static void huge_stack(void)
{
    aco_share_stack_new2(huge, 1);
}

static void huge_unguarded_stack(void)
{
    aco_share_stack_new2(huge, 0);
}

static void huge_save_area(void)
{
    aco_create(main_co, stack, huge, ender, NULL);
}

/* Promise: the calls that make objects are always valid or abort, for any size. */
static void too_much(void)
{
    static const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 1,     SIZE_MAX - 63, SIZE_MAX - 4095,
                                   SIZE_MAX - 70000, SIZE_MAX / 2 + 1, SIZE_MAX / 2,  SIZE_MAX / 2 - 4096};
    const size_t impossible = sizeof(void *) == 8 ? 8 : 6; /* half of a 32-bit address space may well be free */
    set_up(ender);
    for (size_t i = 0; i < impossible; i++) {
        huge = sizes[i];
        ABORTS(huge_stack, "aco_share_stack_new2", NULL, "no memory for");
        ABORTS(huge_unguarded_stack, "aco_share_stack_new2", NULL, "no memory for");
        ABORTS(huge_save_area, "aco_create", NULL, "no memory for");
    }
    tear_down();
}

/* ---- Returning from the entry function ---- */

static void last_word(void)
{
    char here;
    int on_its_stack = &here > (char *)stack->ptr && &here < (char *)stack->ptr + stack->aco__map_sz;
    fprintf(stderr, "last word of %p, %s\n", (void *)aco_get_co(), on_its_stack ? "on its stack" : "elsewhere");
}

static void resume_with_last_word(void)
{
    aco_thread_init(last_word);
    aco_resume(co);
}

static void last_word_withdrawn(void)
{
    aco_thread_init(last_word);
    aco_thread_init(NULL);
    aco_resume(co);
}

static __attribute__((noinline)) void return_later(void)
{
    aco_yield();
}

static void resume_thrice(void)
{
    aco_resume(co);
    aco_resume(other);
    aco_resume(co);
}

static void arrive(void)
{
    aco__interrupted((uintptr_t)co | 1);
}

/* Promise: an interrupt flag that nobody set is not taken for an injected call. */
static void mark_without_event(void)
{
    set_up(ender);
    ABORTS(arrive, "switch", co, "without an injected call");
    tear_down();
}

/* Promises: a coroutine that returns from its entry function ends the process: after the default line, or after the
 * thread's last word, in which aco_get_co() names it, on that coroutine's stack. */
static void returning(void)
{
    char wanted[128];
    child_end_t end;
    set_up(returner);
    ABORTS(resume_co, "aco_exit", co, "entry function returned without calling aco_exit()");
    ABORTS(last_word_withdrawn, "aco_exit", co, "entry function returned without calling aco_exit()");
    end = child_run(resume_with_last_word);
    snprintf(wanted, sizeof wanted, "last word of %p, on its stack\n", (void *)co);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    if (strcmp(end.text, wanted) != 0)
        child_complain(__FILE__, __LINE__, "resume_with_last_word", wanted, &end);
    tear_down();
    set_up(return_later);
    ABORTS(resume_thrice, "aco_exit", co, "entry function returned without calling aco_exit()");
    tear_down();
}

int main(void)
{
    aco_thread_init(NULL);
    main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    resume_what_cannot();
    resume_on_another_thread();
    stack_of_another_thread();
    nobody_runs();
#if ACO_DEBUG
    yield1_of_another();
    mixed_units();
#endif
    create_with_missing();
    reset_what_cannot();
    reset_what_is_native();
    destroy_what_cannot();
    destroy_stack_in_use();
    overflow_without_guard_page();
    too_much();
    mark_without_event();
    returning();
    aco_destroy(main_co);
    return check_result(ACO_DEBUG ? "misuse, debug" : "misuse");
}
