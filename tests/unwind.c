/* Promises: backtraces inside a coroutine end, cleanly, below its entry function; backtraces out of the slow path of a resume
 * reach the resumer and its callers, through the inline switch and through the exported functions. */
#include "aco.h"
#include "check.h"

#include <unwind.h>

enum { DEEPEST = 64 };
static void *functions[DEEPEST];
static int depth;

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *unused)
{
    (void)unused;
    if (depth == DEEPEST)
        return _URC_END_OF_STACK;
    functions[depth++] = _Unwind_FindEnclosingFunction((void *)((uintptr_t)_Unwind_GetIP(context) - 1));
    return _URC_NO_REASON;
}

static void walk(void)
{
    depth = 0;
    _Unwind_Backtrace(note, NULL);
}

static int passed(void (*function)(void))
{
    for (int i = 0; i < depth; i++)
        if (functions[i] == (void *)(uintptr_t)function)
            return 1;
    return 0;
}

/* A save area that grows is mapped on the way to a resume: walk from there. */
static int walk_when_mapping, walks;

static void resume_from_here(void);
static void caller_of_resume(void);

void *__real_mmap(void *at, size_t sz, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t sz, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t sz, int prot, int flags, int fd, off_t offset)
{
    if (walk_when_mapping) {
        walk();
        walks++;
        CHECK(passed(resume_from_here));
        CHECK(passed(caller_of_resume));
    }
    return __real_mmap(at, sz, prot, flags, fd, offset);
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

static void entry(void)
{
    char live[3000];
    __asm__ volatile("" : "=m"(live));
    for (;;) {
        deep_in_coroutine();
        CHECK(passed(deep_in_coroutine));
        CHECK(passed(entry));
        CHECK(passed(resume_from_here)); /* on another stack */
        CHECK(passed(caller_of_resume));
        aco_yield();
        __asm__ volatile("" : "+m"(live));
    }
}

int main(void)
{
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
    return check_result("unwind");
}
