/* Promises: backtraces inside a coroutine go on in its resumer and its callers, also from the slow path of a resume,
 * through the inline switch and through the exported functions. They end cleanly at the coroutine's first frame where
 * another thread has resumed it, in its cleanup, in a generator, where the resumer's frames are saved, and on 32-bit
 * Arm. All that holds from a signal in a function without a frame of its own, too. A forced unwind, such as
 * pthread_exit()'s, always ends there, and so do frame pointers. */
#include "replace.h" /* first */

#include "aco.h"
#include "aco/backtrace.h"
#include "check.h"
#include "sanitizers.h"
#ifndef ACO_CONFIG_NO_INLINE
#include "aco/generator.h"
#endif

#include <pthread.h>
#include <signal.h>
#include <unwind.h>

#if defined(__linux__) && !defined(__arm__) && !defined(ACO_CONFIG_UCONTEXT)
enum { IS_LINKED = 1 };
#else /* backtraces end at the coroutine's first frame */
enum { IS_LINKED = 0 };
#endif
/* Elsewhere what a handler returns to has no unwind tables, and a walk ends there or goes astray: musl's, EHABI's, and
 * Power's in qemu. */
#if defined(__GLIBC__) && !defined(__arm__) && !defined(__powerpc64__)
enum { WALKS_THROUGH_SIGNALS = 1 };
#else
enum { WALKS_THROUGH_SIGNALS = 0 };
#endif
enum { DEEPEST = 64 };
static void *functions[DEEPEST];
static uintptr_t outermost;
static int depth;

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *unused)
{
    (void)unused;
    if (depth == DEEPEST || !_Unwind_GetIP(context))
        return _URC_END_OF_STACK;
    outermost = _Unwind_GetIP(context);
    functions[depth++] = (void *)_Unwind_GetRegionStart(context);
    return _URC_NO_REASON;
}

static void walk(void)
{
    depth = 0;
    _Unwind_Backtrace(note, NULL);
}

static int times_passed(uintptr_t function)
{
    int n = 0;
    for (int i = 0; i < depth; i++)
        n += ((uintptr_t)functions[i] | 1) == (function | 1); /* Thumb's bit */
    return n;
}

static int passed(void (*function)(void))
{
    return times_passed((uintptr_t)function) != 0;
}

/* A save area that grows is mapped on the way to a resume: walk from there. */
static int walk_when_mapping, walks;

static void resume_from_here(void);
static void caller_of_resume(void);

REAL(mmap);
static void *failing_mmap(void *at, size_t sz, int protection, int flags)
{
    if (walk_when_mapping) {
        walk();
        walks++;
        CHECK(passed(resume_from_here));
        CHECK(passed(caller_of_resume));
    }
    return real_mmap(at, sz, protection, flags);
}

static aco_t *to_resume;

static __attribute__((noinline)) void resume_from_here(void)
{
    aco_resume(to_resume);
    __asm__ volatile("");
}

static __attribute__((noinline)) void caller_of_resume(void)
{
    resume_from_here();
    __asm__ volatile("");
}

static __attribute__((noinline)) void deep_in_coroutine(void)
{
    walk();
    __asm__ volatile("");
}

#if defined(ACO_CONFIG_NO_INLINE) && defined(__s390x__) /* without the architecture's header */
#define RETURN_WORD 14
#elif defined(ACO_CONFIG_NO_INLINE) && defined(__powerpc64__)
#define RETURN_WORD 2
#elif defined(ACO_CONFIG_NO_INLINE)
#define RETURN_WORD 0
#else
#define RETURN_WORD ACO__RETURN_WORD
#endif
#define RETURN_ADDRESS(co) ((void **)(co)->share_stack->aco__top)[RETURN_WORD]

static int is_the_end(uintptr_t where)
{
    uintptr_t mode = 1; /* Thumb's bit, which the unwinder leaves out */
#ifdef ACO_CONFIG_UCONTEXT /* in a function of the C library's */
    where = outermost;
#endif
    return depth > 1 && depth < 20 && (outermost | mode) == (where | mode) && !passed(resume_from_here) &&
           !passed(caller_of_resume);
}

/* In the function under every coroutine's. */
static int ends_cleanly(const aco_t *co)
{
    return is_the_end((uintptr_t)RETURN_ADDRESS(co));
}

static void entry(void)
{
    char live[3000];
    __asm__ volatile("" : "=m"(live));
    for (;;) {
        deep_in_coroutine();
        CHECK(passed(deep_in_coroutine));
        CHECK(passed(entry));
        CHECK_EQ(passed(resume_from_here), IS_LINKED); /* on another stack */
        CHECK_EQ(passed(caller_of_resume), IS_LINKED);
        CHECK(IS_LINKED || ends_cleanly(aco_get_co()));
        aco_yield();
        __asm__ volatile("" : "+m"(live));
    }
}

/* ---- Where the walk ends ---- */

static int nested_passed;

static void *walks_once(void *arg)
{
    aco_yield();
    walk();
    nested_passed = passed(resume_from_here) && passed(caller_of_resume);
    return arg;
}

static void *resumes_there(void *co)
{
    to_resume = co;
    caller_of_resume();
    return co;
}

static void *makes_there(void *unused)
{
    (void)unused;
    return resumes_there(aco_new(walks_once, NULL, NULL));
}

/* Its thread-local memory is gone when this returns. */
static void *on_a_thread(void *(*fn)(void *), void *arg)
{
    enum { SIZE = 1 << 20 };
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = NULL, *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, SIZE), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, fn, arg), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    munmap(stack, SIZE);
    return result;
}

/* It begins on one thread, which may have ended, and walks on another. */
static void on_another_thread(int home_has_ended)
{
    aco_t *co = home_has_ended ? on_a_thread(makes_there, NULL) : makes_there(NULL);
    if (home_has_ended)
        resumes_there(co);
    else
        on_a_thread(resumes_there, co);
    CHECK(co->is_end);
    CHECK(ends_cleanly(co));
    aco_destroy(co);
}

static void walks_deferred(void *unused)
{
    (void)unused;
    walk();
}

static void *defers(void *arg)
{
    CHECK_EQ(aco_defer(walks_deferred, NULL), 0);
    aco_yield();
    return arg;
}

static void in_a_cleanup(void)
{
    aco_t *co = to_resume = aco_new(defers, NULL, NULL);
    caller_of_resume();
    caller_of_resume();
    CHECK(ends_cleanly(co));
    aco_destroy(co);
}

/* A, on a share stack, resumes B, which resumes C on A's stack. B is one coroutine, or two where the first resumes the
 * second. */
static int between;

static void *resumes(void *co)
{
    aco_send(co, NULL);
    walk();
    return NULL;
}

static void *walks_over_saved_frames(void *arg)
{
    walk();
    CHECK(depth < 20);
    CHECK_EQ(times_passed((uintptr_t)resumes), IS_LINKED ? between : 0);
    CHECK(!passed(resume_from_here)); /* in the frames of A, which are not there */
    return arg;
}

static void over_saved_frames(void)
{
    aco_share_stack_t *stack = aco_share_stack_new(0);
    const aco_options_t shared = {.stack = stack};
    for (between = 1; between <= 2; between++) {
        aco_t *c = aco_new(walks_over_saved_frames, NULL, &shared), *second = aco_new(resumes, c, NULL),
              *first = aco_new(resumes, second, NULL), *a = aco_new(resumes, between == 2 ? first : second, &shared);
        resumes_there(a);
        CHECK(a->is_end && second->is_end && c->is_end && first->is_end == (between == 2));
        CHECK_EQ(passed(resume_from_here), IS_LINKED); /* when A is back */
        aco_destroy(a);
        aco_destroy(first);
        aco_destroy(second);
        aco_destroy(c);
    }
    aco_share_stack_destroy(stack);
}

static void nested(void)
{
    aco_t *b = aco_new(walks_once, NULL, NULL), *a;
    aco_send(b, NULL);
    a = aco_new(resumes, b, NULL);
    resumes_there(a);
    CHECK(a->is_end && b->is_end);
    CHECK_EQ(nested_passed, IS_LINKED);
    aco_destroy(a);
    aco_destroy(b);
}

#ifndef ACO_CONFIG_NO_INLINE
ACO_GENERATOR(walks_in_generator, y, arg)
{
    deep_in_coroutine();
    CHECK(passed(deep_in_coroutine));
    aco_generate(y, arg);
}

static __attribute__((noinline)) void consume(void)
{
    aco_generator_t g;
    CHECK_EQ(aco_generator_open(&g, walks_in_generator, NULL, NULL), 0);
    CHECK(aco_generator_next(&g));
    CHECK(is_the_end((uintptr_t)aco__generator_return));
    CHECK(!passed(consume));
    aco_generator_close(&g);
}
#endif

/* From a signal in a function that calls none: it may have no frame of its own, and nothing records where its stack
 * pointer was. */
static const volatile char *not_readable;

static __attribute__((noinline)) void touches(void)
{
    while (*not_readable == 0)
        ;
}

static void on_touch(int sig)
{
    (void)sig;
    walk();
    aco_exit();
}

static void from_a_signal(void)
{
    struct sigaction action = {.sa_handler = on_touch, .sa_flags = SA_NODEFER}, before;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    not_readable = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, &before);
    to_resume = aco_create(main_co, stack, 0, touches, NULL);
    caller_of_resume();
    CHECK(to_resume->is_end);
    CHECK(depth > 0);
    if (WALKS_THROUGH_SIGNALS)
        CHECK(depth < 20 && passed(touches));
    CHECK_EQ(passed(resume_from_here), IS_LINKED && passed(touches));
    CHECK_EQ(passed(caller_of_resume), IS_LINKED && passed(touches));
    aco_destroy(to_resume);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    sigaction(SIGSEGV, &before, NULL);
    munmap((void *)(uintptr_t)not_readable, page);
}

static int cleaned_inside, cleaned_outside;

static void clean_up(int **what)
{
    ++**what;
}

static void *exits_thread(void *arg)
{
    __attribute__((cleanup(clean_up), unused)) int *inside = &cleaned_inside;
    pthread_exit(arg);
}

static void *resumes_exiting(void *arg)
{
    __attribute__((cleanup(clean_up), unused)) int *outside = &cleaned_outside;
    aco_send(aco_new(exits_thread, arg, NULL), NULL);
    return NULL;
}

static void forced(void)
{
    if (UNDER_TSAN) /* which takes it for the end of a thread of its own */
        return;
    CHECK(on_a_thread(resumes_exiting, &cleaned_inside) == (void *)&cleaned_inside);
#ifdef __GLIBC__ /* elsewhere pthread_exit() need not unwind: musl's does not */
    CHECK_EQ(cleaned_inside, 1);
#endif
    CHECK_EQ(cleaned_outside, 0);
}

#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
#undef FRAME_POINTERS /* elsewhere a frame pointer points elsewhere */
#endif
#ifdef FRAME_POINTERS
/* What a profiler does that goes by frame pointers, from a function that has one. */
static void *follows(void *arg)
{
    void *const *frame = __builtin_frame_address(0);
    void *lo, *hi;
    int frames = 0;
    CHECK_EQ(aco_stack_bounds(aco_get_co(), &lo, &hi), 0);
    for (; frame; frame = frame[0], frames++)
        if ((void *)frame < lo || (void *)frame >= hi || frames > 3) {
            CHECK(!"the chain of frame pointers ends in the coroutine");
            break;
        }
    CHECK(frames > 0);
    return arg;
}

static void frame_pointers(void)
{
    aco_t *co = aco_new(follows, NULL, NULL);
    aco_send(co, NULL);
    CHECK(co->is_end);
    aco_destroy(co);
}
#endif

/* aco_backtrace() borrows the running coroutine's unwind parent, and must give it back. */
static void after_a_backtrace(void)
{
    void *frames[DEEPEST];
    aco_t *co = aco_new(walks_once, NULL, NULL);
    aco_send(co, NULL);
    CHECK(!IS_LINKED || aco_backtrace(co, frames, DEEPEST) > 0);
    aco_send(co, NULL);
    aco_destroy(co);
    nested();
}

int main(void)
{
    after_a_backtrace();
    REPLACE(mmap);
    aco_thread_init(NULL);
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    aco_share_stack_t *stack = aco_share_stack_new(0);
    aco_t *co[2] = {aco_create(main_co, stack, 0, entry, NULL), aco_create(main_co, stack, 0, entry, NULL)};
    to_resume = co[0];
    caller_of_resume();
    walk_when_mapping = 1;
    to_resume = co[1];
    caller_of_resume(); /* saves co[0], whose area has to grow */
    walk_when_mapping = 0;
    CHECK(walks > 0);
    for (int i = 0; i < 6; i++) {
        to_resume = co[i % 2];
        caller_of_resume();
    }
    aco_destroy(co[0]);
    aco_destroy(co[1]);
    aco_share_stack_destroy(stack);
    aco_destroy(main_co);
    on_another_thread(0);
    on_another_thread(1);
    in_a_cleanup();
    over_saved_frames();
    nested();
#ifndef ACO_CONFIG_NO_INLINE
    consume();
#endif
    if (!UNDER_TSAN) /* for which a handler returns */
        from_a_signal();
    forced();
#ifdef FRAME_POINTERS
    frame_pointers();
#endif
    return check_result("unwind");
}
