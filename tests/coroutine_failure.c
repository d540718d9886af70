/* Every failure of a call without memory, by injected failures (include/aco.h: ENOMEM; EAGAIN where the kernel's limit
 * on mappings is the reason): errno and message are right, nothing leaks, what was made before still works, and the
 * same call works when there is memory again. Each child makes one request for memory fail: the first, the second, ...
 * until none is left. With the argument "mappings": the kernel's limit on mappings is used up. */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "map_aligned.h"
#include "proc.h"
#include "fails.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* ---- An allocator that fails once ---- */

enum { SLAB = 2 << 20, MOST_SLABS = 64 };

static unsigned long requests, fail_at; /* 0: never; the first request is 1 */
static int armed, injected;
static long allocated, mapped;          /* mappings, except for slabs */
static void *slabs[MOST_SLABS];

static int fails(void)
{
    if (!armed || ++requests != fail_at)
        return 0;
    injected = 1;
    return 1;
}

static void *map(size_t sz, size_t align, void *ctx)
{
    void *p;
    (void)ctx;
    if (fails() || !(p = map_aligned(sz, align)))
        return NULL;
    if (sz != SLAB)
        mapped++;
    for (int i = 0; sz == SLAB && i < MOST_SLABS; i++)
        if (!slabs[i]) {
            slabs[i] = p;
            break;
        }
    return p;
}

static void unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    if (sz != SLAB)
        mapped--;
    for (int i = 0; sz == SLAB && i < MOST_SLABS; i++)
        if (slabs[i] == p)
            slabs[i] = NULL;
    munmap(p, sz);
}

static void *allocate(size_t sz, void *ctx)
{
    (void)ctx;
    if (fails())
        return NULL;
    allocated++;
    return malloc(sz);
}

static void release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    allocated--;
    free(p);
}

/* The beginning of a slab, as in src/base/slab.c: nothing may be in use in those that are left. */
struct slab {
    void *pointers[6];
    uint32_t fresh, used;
};

static void check_balance(void)
{
    CHECK_EQ(allocated, 0);
    CHECK(mapped <= 1); /* the heap's record waits for the next thread */
    for (int i = 0; i < MOST_SLABS; i++)
        if (slabs[i])
            CHECK_EQ(((const struct slab *)slabs[i])->used, 0);
}

/* ---- Attempts ---- */

/* A call that fails is made again, and then works. Only the injected failure may make it fail. */
#define ATTEMPT(result, failed, expression, call)                                                                      \
    do {                                                                                                               \
        int injected_before = injected;                                                                                \
        errno = 0;                                                                                                     \
        (result) = (expression);                                                                                       \
        if ((result) == (failed)) {                                                                                    \
            check_refusal(__LINE__, injected_before, call);                                                            \
            (result) = (expression);                                                                                   \
        }                                                                                                              \
        CHECK((result) != (failed));                                                                                   \
    } while (0)

static unsigned refusals; /* of this child */

static void check_refusal(int line, int injected_before, const char *call)
{
    const char *message = aco_error_message();
    int error = errno;
    refusals++;
    if (!injected_before && injected && error == ENOMEM && strncmp(message, call, strlen(call)) == 0 &&
        strstr(message, ": no memory for "))
        return;
    fprintf(stderr, "%s:%d: request %lu: %s refused with errno %d, message \"%s\"\n", __FILE__, line, fail_at, call,
            error, message);
    CHECK(!"the refusal");
}

static int called;
static aco_local_key_t key;

static void count_call(void *arg)
{
    (void)arg;
    called++;
}

static void *yields_once(void *arg)
{
    CHECK(aco_yield_value(arg) == arg);
    return arg;
}

static void use(aco_t *co)
{
    CHECK(aco_result(co) == ACO_ERROR);
    CHECK(aco_send(co, co->arg) == co->arg);
    CHECK(aco_state(co) == ACO_STATE_DONE && aco_result(co) == co->arg);
}

/* ---- The work: each kind of coroutine, each call that may want memory ---- */

static void *defers(void *arg)
{
    int result;
    ATTEMPT(result, -1, aco_defer(count_call, arg), "aco_defer");
    return arg;
}

static void *has_everything(void *arg)
{
    int result;
    ATTEMPT(result, -1, aco_set_local(key, arg), "aco_set_local");
    ATTEMPT(result, -1, aco_set_slot(NULL, arg), "aco_set_slot");
    ATTEMPT(result, -1, aco_defer(count_call, arg), "aco_defer");
    ATTEMPT(result, -1, aco_defer(count_call, arg), "aco_defer");
    CHECK(aco_yield_value(arg) == arg);
    CHECK(aco_get_local(key) == arg && aco_slot(NULL) == arg);
    return arg;
}

static void on_private_stacks(aco_share_stack_t *unused)
{
    aco_options_t options = {.name = "named", .stack_size = 100000};
    aco_t *plain, *named, *cancelled;
    int result;
    (void)unused;
    ATTEMPT(plain, NULL, aco_new(defers, &key, NULL), "aco_new");
    called = 0;
    CHECK(aco_send(plain, NULL) == &key); /* it could defer, so its end makes the call */
    CHECK_EQ(called, 1);
    CHECK_EQ(aco_restart(plain, yields_once, &key), 0);
    CHECK(aco_send(plain, NULL) == &key);
    ATTEMPT(named, NULL, aco_new(has_everything, &named, &options), "aco_new");
    CHECK(aco_send(named, NULL) == &named);
    ATTEMPT(cancelled, NULL, aco_new(has_everything, &key, NULL), "aco_new");
    CHECK(aco_send(cancelled, NULL) == &key);
    called = 0;
    ATTEMPT(result, -1, aco_cancel(cancelled), "aco_cancel");
    CHECK_EQ(called, 2 + 1);
    use(named);
    use(plain);
    CHECK_EQ(called, 2 + 1 + 2 + 1);
    ATTEMPT(result, -1, aco_set_name(plain, "new"), "aco_set_name");
    CHECK(strcmp(aco_name(plain), "new") == 0 && strcmp(aco_name(named), "named") == 0);
    aco_destroy(plain);
    aco_destroy(named);
    aco_destroy(cancelled);
    ATTEMPT(result, -1, aco_set_slot(NULL, &key), "aco_set_slot");
    ATTEMPT(result, -1, aco_set_local(key, &key), "aco_set_local");
}

#if SHARE_STACKS
static void *holds_much(void *arg)
{
    char bytes[30000];
    memset(bytes, 'm', sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    CHECK(aco_yield_value(arg) == arg);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 'm')
            CHECK(!"a frame was changed");
    return arg;
}

/* Resumes one on its own stack, so that its frames must go, and transfers to one. */
static void *resumes_here(void *arg)
{
    aco_t *const *others = arg;
    char bytes[20000];
    void *got;
    int result;
    memset(bytes, 'r', sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    ATTEMPT(got, ACO_ERROR, aco_send(others[0], NULL), "aco_send");
    CHECK(got == others[0]->arg);
    ATTEMPT(result, -1, aco_yield_to(others[1]), "aco_yield_to");
    __asm__ volatile("" : : "r"(bytes) : "memory");
    for (size_t i = 0; i < sizeof bytes; i++)
        if (bytes[i] != 'r')
            CHECK(!"a frame was changed");
    return arg;
}

static void on_a_share_stack(aco_share_stack_t *stack)
{
    aco_options_t options = {.stack = stack, .save_size = 17000};
    aco_t *much, *other, *named, *others[2];
    void *got;
    int result;
    ATTEMPT(much, NULL, aco_new(holds_much, &much, &options), "aco_new");
    options.save_size = 0;
    ATTEMPT(other, NULL, aco_new(resumes_here, others, &options), "aco_new");
    options.name = "on a share stack";
    ATTEMPT(named, NULL, aco_new(has_everything, &named, &options), "aco_new");
    ATTEMPT(others[1], NULL, aco_new(holds_much, &key, &options), "aco_new");
    others[0] = named;
    CHECK(aco_send(much, NULL) == &much);
    ATTEMPT(got, ACO_ERROR, aco_send(other, NULL), "aco_send"); /* saves `much`, which grows */
    CHECK(got == &key);                                         /* yielded by the one that it transferred to */
    CHECK_EQ(aco_state(other), ACO_STATE_SUSPENDED);
    ATTEMPT(got, ACO_ERROR, aco_send(other, NULL), "aco_send");
    CHECK(got == others && aco_result(other) == others);
    ATTEMPT(got, ACO_ERROR, aco_send(much, &much), "aco_send");
    CHECK(got == &much);
    CHECK(strcmp(aco_name(named), "on a share stack") == 0);
    called = 0;
    use(named);
    CHECK_EQ(called, 2 + 1);
    ATTEMPT(result, -1, aco_cancel(others[1]), "aco_cancel");
    aco_destroy(much);
    aco_destroy(other);
    aco_destroy(named);
    aco_destroy(others[1]);
}

static void *sends(void *co)
{
    void *got;
    ATTEMPT(got, ACO_ERROR, aco_send(co, NULL), "aco_send");
    CHECK(got == &key);
    return co;
}

static void *resumes(void *co)
{
    aco_resume(co);
    return co;
}

static void *transfers(void *co)
{
    char bytes[20000];
    int result;
    memset(bytes, 't', sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    ATTEMPT(result, -1, aco_yield_to(co), "aco_yield_to");
    __asm__ volatile("" : : "r"(bytes) : "memory");
    CHECK(bytes[0] == 't' && bytes[sizeof bytes - 1] == 't');
    return co;
}

/* It returns if it fails only. */
static void *exits(void *co)
{
    int injected_before = injected;
    errno = 0;
    CHECK_EQ(aco_exit_to(co, NULL), -1);
    check_refusal(__LINE__, injected_before, "aco_exit_to");
    aco_exit_to(co, NULL);
    CHECK(!"it does not return again");
    return NULL;
}

static aco_t *new_of(aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco_t *co;
    ATTEMPT(co, NULL, aco_new(fn, arg, options), "aco_new");
    return co;
}

/* Has more frames on the stack than its save area holds. */
static aco_t *new_owner(const aco_options_t *options)
{
    aco_t *co = new_of(holds_much, &key, options);
    void *got;
    ATTEMPT(got, ACO_ERROR, aco_send(co, NULL), "aco_send");
    CHECK(got == &key);
    return co;
}

static void finish(aco_t *co)
{
    void *got;
    ATTEMPT(got, ACO_ERROR, aco_send(co, &key), "aco_send");
    CHECK(got == co->arg && aco_state(co) == ACO_STATE_DONE);
    aco_destroy(co);
}

/* One that waits for what it resumed is to be saved. */
static void who_waits(aco_share_stack_t *stack)
{
    aco_options_t options = {.stack = stack, .save_size = 8000}; /* enough: else the yield aborts */
    aco_t *last = new_of(yields_once, &key, &options), *between = new_of(sends, last, NULL),
          *first = new_of(resumes, between, &options);
    CHECK(aco_send(first, NULL) == between && aco_result(between) == last);
    finish(last);
    aco_destroy(between);
    aco_destroy(first);
}

static void *holds_some(void *arg)
{
    char bytes[700];
    memset(bytes, 's', sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    CHECK(aco_yield_value(arg) == arg);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    CHECK(bytes[0] == 's' && bytes[sizeof bytes - 1] == 's');
    return arg;
}

/* The first name, where the frames fill the save area: needs cold data and a larger area. */
static void named_while_saved(aco_share_stack_t *stack)
{
    aco_options_t options = {.stack = stack, .save_size = 2000};
    aco_t *other = new_of(yields_once, &key, &options), *first = new_of(holds_some, &key, &options), *full;
    int result;
    CHECK(aco_send(first, NULL) == &key && aco_send(other, NULL) == &key);
    options.save_size = first->save_stack.valid_sz;
    full = new_of(holds_some, &key, &options);
    CHECK(aco_send(full, NULL) == &key);
    finish(other); /* saves `full` */
    ATTEMPT(result, -1, aco_set_name(full, "saved"), "aco_set_name");
    CHECK(strcmp(aco_name(full), "saved") == 0);
    finish(first);
    finish(full);
}

/* A stack in use that another coroutine needs: one that is resumed, transferred to or cancelled, by a coroutine on the
 * same stack, on another, or by the root context. */
static void on_a_stack_in_use(aco_share_stack_t *stack)
{
    for (unsigned flags = 0; flags <= ACO_OWN_EXCEPTIONS; flags += ACO_OWN_EXCEPTIONS) {
        aco_options_t options = {.stack = stack, .flags = flags}, elsewhere = {.flags = flags};
        aco_t *owner, *other = new_of(holds_much, &key, &options), *who = new_of(transfers, other, &options);
        void *got;
        int result;
        ATTEMPT(got, ACO_ERROR, aco_send(who, NULL), "aco_send");
        CHECK(got == &key); /* by `other` */
        finish(other);
        finish(who);
        for (int i = 0; i < 3; i++) {
            static const aco_function_t ways[] = {sends, transfers, exits};
            owner = new_owner(&options);
            other = new_of(holds_much, &key, &options);
            who = new_of(ways[i], other, &elsewhere);
            ATTEMPT(got, ACO_ERROR, aco_send(who, NULL), "aco_send");
            CHECK(got == (i ? (void *)&key : other));
            finish(other);
            finish(owner);
            if (i == 1)
                finish(who);
            else
                aco_destroy(who);
        }
        other = new_owner(&options);
        owner = new_owner(&options); /* saves it */
        ATTEMPT(result, -1, aco_cancel(other), "aco_cancel");
        aco_destroy(other);
        finish(owner);
    }
}
#endif

static void in_own_flow(aco_share_stack_t *unused)
{
    int result;
    (void)unused;
    ATTEMPT(result, -1, aco_set_slot(NULL, &key), "aco_set_slot");
}

static int count_one(aco_t *co, void *arg)
{
    (void)co;
    ++*(int *)arg;
    return 0;
}

typedef void part_t(aco_share_stack_t *stack);

/* Each in a thread of its own, which starts only with what an earlier one left. */
static part_t *const parts[] = {
#if SHARE_STACKS
    on_a_share_stack, named_while_saved, who_waits, on_a_stack_in_use,
#endif
    on_private_stacks, in_own_flow};
enum { PARTS = sizeof parts / sizeof *parts };
static size_t first_part; /* which finds no memory of the library's */

static void *work(void *arg)
{
    part_t *const *part = arg;
    aco_share_stack_t *stack = SHARE_STACKS ? aco_share_stack_new(0) : NULL; /* libaco's calls abort */
    int living = 0;
    armed = 1;
    (*part)(stack);
    armed = 0;
    aco_each(count_one, &living);
    CHECK_EQ(living, 0);
    if (stack)
        aco_share_stack_destroy(stack);
    return NULL;
}

enum { NOTHING_FAILED = 77 };

static void one_failure(void)
{
    aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    pthread_t thread;
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    CHECK_EQ(aco_local_key_create(&key, count_call), 0);
    for (size_t i = 0; i < PARTS; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, work, (void *)(uintptr_t)&parts[(first_part + i) % PARTS]), 0);
        pthread_join(thread, NULL);
    }
    check_balance();
    if (!injected && !check_failures)
        _exit(NOTHING_FAILED);
}

/* A yield to a resumer that must get its frames back to this stack saves the caller's frames. It cannot fail: without
 * memory it aborts. */
static int yield_aborts(const child_end_t *end)
{
    return WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGABRT && is_one_line(end->text) &&
           strncmp(end->text, "acorn: aco_yield: ", 18) == 0 && strstr(end->text, ": no memory for ");
}

static void every_failure(void)
{
    int aborted = 0;
    for (fail_at = 1; fail_at < 1000; fail_at++) {
        child_end_t end = child_run(one_failure);
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == NOTHING_FAILED)
            break;
        if (SHARE_STACKS && yield_aborts(&end))
            aborted++;
        else if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0) {
            char wanted[64];
            snprintf(wanted, sizeof wanted, "all well when request %lu fails", fail_at);
            child_complain(__FILE__, __LINE__, "one_failure", wanted, &end);
        }
    }
    printf("coroutine_failure: %lu requests\n", fail_at - 1);
    CHECK(fail_at > 5 && fail_at < 1000);
    CHECK(aborted <= 1);
}

#if SHARE_STACKS
/* A cancellation that fails leaves no injected call behind for the next arrival: an interrupt flag then has none, and
 * the process says so. */
static void cancel_is_refused(void)
{
    aco_allocator_t allocator = {map, unmap, allocate, release, NULL};
    aco_share_stack_t *stack;
    aco_t *other;
    CHECK_EQ(aco_set_allocator(&allocator), 0);
    stack = aco_share_stack_new(0);
    other = new_owner(&(aco_options_t){.stack = stack});
    new_owner(&(aco_options_t){.stack = stack}); /* saves it, and must be saved for it */
    armed = 1;
    if (aco_cancel(other) == 0)
        _exit(NOTHING_FAILED);
    armed = 0;
    CHECK_EQ(errno, ENOMEM);
    aco__interrupted(0);
}

static void refused_cancellations(void)
{
    for (fail_at = 1; fail_at < 10; fail_at++) {
        child_end_t end = child_run(cancel_is_refused);
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == NOTHING_FAILED)
            break;
        if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGABRT ||
            strcmp(end.text, "acorn: switch: the interrupt flag is set without an injected call\n") != 0)
            child_complain(__FILE__, __LINE__, "cancel_is_refused", "an interrupt flag without an injected call", &end);
    }
    CHECK(fail_at > 2 && fail_at < 10);
}
#endif

/* ---- The limit on mappings ---- */

#if defined(__linux__) && SHARE_STACKS
/* Mappings that cannot be merged, until there are no more. Returns one of them. */
static char *use_up_mappings(size_t page)
{
    char *p = NULL, *last = NULL;
    for (int i = 0; p != MAP_FAILED; i++) {
        p = mmap(NULL, page, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        last = p != MAP_FAILED ? p : last;
    }
    CHECK_EQ(errno, ENOMEM);
    return last;
}

static int with_message; /* the thread already has memory for messages */

static void no_mapping_left(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    aco_t *before = aco_new(yields_once, &key, NULL), *after;
    char *last;
    aco_options_t options = {.stack_size = 9 << 20}; /* no pool has that */
    CHECK(aco_send(before, NULL) == &key);
    if (with_message)
        CHECK(aco_send(NULL, NULL) == ACO_ERROR);
    last = use_up_mappings(page);
    errno = 0;
    after = aco_new(yields_once, &key, &options);
    CHECK(after == NULL);
    CHECK_EQ(errno, EAGAIN);
    if (!strstr(aco_error_message(), "vm.max_map_count"))
        fprintf(stderr, "the message is \"%s\"\n", aco_error_message());
    CHECK(strncmp(aco_error_message(), "aco_new: ", 9) == 0 && strstr(aco_error_message(), "vm.max_map_count"));
    use(before);
    for (int i = 0; i < 64; i++)
        munmap(last + (size_t)i * page, page);
    after = aco_new(yields_once, &key, &options);
    CHECK(after != NULL);
    CHECK(aco_send(after, NULL) == &key);
    use(after);
    aco_destroy(after);
    aco_destroy(before);
}
#endif

int main(int argc, char **argv)
{
#if defined(__linux__) && SHARE_STACKS
    if (argc > 1 && strcmp(argv[1], "mappings") == 0) {
        if (!mapping_limit() || mapping_limit() > 300000) {
            printf("skipped: the limit on mappings is too high to be reached here\n");
            return 77;
        }
        for (with_message = 0; with_message < 2; with_message++)
            PASSES(no_mapping_left);
        return check_result("coroutine_failure mappings");
    }
#else
    (void)argc, (void)argv;
#endif
    for (first_part = 0; first_part < 2; first_part++)
        every_failure();
#if SHARE_STACKS
    refused_cancellations();
#endif
    return check_result("coroutine_failure");
}
